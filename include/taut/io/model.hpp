#pragma once
// Models to and from safetensors files, under PyTorch's names.

#include <string>
#include <vector>

#include "../nn/model.hpp"
#include "safetensors.hpp"

namespace taut::io {

/// Writes all tensors of a model, buffers included, under their names (`layer1.0.conv1.weight`). The file
/// replaces `path` in one step, so a crash leaves the old one whole. Throws `DataError` if it cannot be
/// written.
template <Model M> void save(const M& model, const std::string& path, const Metadata& metadata = {}) {
  using E = typename TensorOf<M>::Element;
  std::vector<std::vector<E>> values;
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : named_tensors(model)) {
    values.push_back(tensor.to_host());
    views.push_back({name, dtype_of<E>, tensor.shape(), little_endian_bytes(std::span(values.back()))});
  }
  write_safetensors(path, views, metadata);
}

namespace detail {

/// The tensors that a model asks of a file.
template <Model M> std::vector<ExpectedTensor> expected_tensors(const M& model) {
  std::vector<ExpectedTensor> expected;
  for (const auto& [name, tensor] : named_tensors(model)) expected.push_back({name, tensor.shape()});
  return expected;
}

/// Gives a model the values of a file that has been found to have them all.
template <Model M> void assign_tensors(M& model, const SafetensorsFile& file) {
  using T = TensorOf<M>;
  for (const auto& [name, tensor] : named_tensors(model)) {
    const auto values = file.find(name)->template values<typename T::Element>();
    if constexpr (is_grad<T>)
      tensor.assign(T::Inner::from_host(values, tensor.shape()));
    else
      tensor = T::from_host(values, tensor.shape());
  }
}

}  // namespace detail

/// Reads the values of all tensors of a model from a file that `save` or PyTorch wrote; other
/// types are converted. A parameter stays the same leaf. Throws `DataError`, which names each missing,
/// unexpected and misshaped tensor, and then leaves the model as it was.
template <Model M> void load(M& model, const std::string& path) {
  const auto file = SafetensorsFile::read(path);
  check_tensors(file, detail::expected_tensors(model));
  detail::assign_tensors(model, file);
}

}  // namespace taut::io
