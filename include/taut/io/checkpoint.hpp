#pragma once
// Checkpoints: all that a training needs to go on where it was, in one safetensors file.

#include <charconv>
#include <string>
#include <vector>

#include "../optim/optimizer.hpp"
#include "model.hpp"

namespace taut::io {

namespace detail {

inline constexpr std::string_view steps_key = "optimizer.steps";

inline std::string state_name(std::size_t i) {
  return std::string(optimizer_state_prefix) + std::to_string(i);
}

/// A whole number among a file's free texts.
inline std::int64_t read_number(const SafetensorsFile& file, std::string_view key) {
  const auto found = file.metadata().find(std::string(key));
  std::int64_t value = -1;
  if (found != file.metadata().end()) {
    const char* const end = found->second.data() + found->second.size();
    const auto [stop, error] = std::from_chars(found->second.data(), end, value);
    constexpr std::int64_t most = std::int64_t{1} << 53;
    if (error != std::errc() || stop != end || value > most) value = -1;
  }
  if (value < 0)
    throw DataError(file.path(), -1,
                    "load_checkpoint: '" + std::string(key) + "' is missing or no number: not a checkpoint");
  return value;
}

}  // namespace detail

/// Writes a model and the state of its optimizer, together with free texts, such as the number of the epoch,
/// to a file that replaces `path` in one step. `load` reads the model alone from it. Throws `DataError` if it
/// cannot be written.
template <Model M>
void save_checkpoint(const M& model, const optim::Optimizer& optimizer, const std::string& path,
                     Metadata metadata = {}) {
  auto stored = detail::stored_tensors(model);
  auto state = optimizer.state();
  for (std::size_t i = 0; i < state.size(); ++i)
    stored.add(detail::state_name(i), state[i].shape, std::move(state[i].values));
  metadata[std::string(detail::steps_key)] = std::to_string(optimizer.steps());
  stored.write(path, metadata);
}

/// Restores a model and its optimizer from a file that `save_checkpoint` wrote, and returns the free texts.
/// Throws `DataError` if the file is damaged, no checkpoint or of another model, and then leaves both as they
/// were.
template <Model M> Metadata load_checkpoint(M& model, optim::Optimizer& optimizer, const std::string& path) {
  const auto file = SafetensorsFile::read(path);
  const auto steps = detail::read_number(file, detail::steps_key);
  auto expected = detail::expected_tensors(model);
  auto state = optimizer.state();
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto* const found = file.find(detail::state_name(i));
    expected.push_back({detail::state_name(i), found ? found->shape : Shape{}});
    if (found) state[i] = {found->shape, found->template values<double>()};
  }
  check_tensors(file, expected);
  std::size_t states = 0;
  for (const auto& tensor : file.tensors())
    states +=
        std::string_view(tensor.name).substr(0, optimizer_state_prefix.size()) == optimizer_state_prefix;
  if (states != state.size())
    throw DataError(path, -1, "load_checkpoint: the optimizer's state is of another rule");
  try {
    optimizer.restore(state, steps);
  } catch (const Error& error) {
    throw DataError(path, -1, "load_checkpoint: " + std::string(error.what()));
  }
  detail::assign_tensors(model, file);
  return file.metadata();
}

}  // namespace taut::io
