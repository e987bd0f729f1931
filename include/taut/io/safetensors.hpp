#pragma once
// Reading and writing safetensors files: named tensors, as PyTorch and its relatives exchange them. A file
// is the size of its header (8 bytes, little-endian), the header in JSON, and the tensors' elements, dense,
// row-major and little-endian, one tensor behind the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "dtype.hpp"
#include "file.hpp"
#include "safetensors_header.hpp"
#include "safetensors_json.hpp"

namespace taut::io {

/// A named tensor whose elements lie elsewhere: dense, row-major, little-endian, at any alignment.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;

  /// The elements as `float` or `double`, rounded to the nearest value (see `convert`).
  template <std::floating_point T> std::vector<T> values() const {
    std::vector<T> result(static_cast<std::size_t>(shape.size()));
    convert(dtype, bytes, std::span(result));
    return result;
  }
};

namespace detail {

/// The indices of the tensors in the order of their names. Throws a `DataError` if two have the same.
inline std::vector<std::size_t> names_in_order(std::span<const TensorView> tensors, const std::string& path,
                                               const char* function) {
  auto order = sorted_indices(
      tensors.size(), [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& name = tensors[order[i]].name;
    if (tensors[order[i - 1]].name != name) continue;
    throw DataError(path, -1, function + std::string("two tensors are called ") + printable(name));
  }
  return order;
}

}  // namespace detail

/// The checked content of a safetensors file. Copies share the data, and the views of `tensors` live as
/// long as any of them.
class SafetensorsFile {
 public:
  /// Reads a file. Throws a `DataError`, which says where the fault is, if it cannot be read or is damaged:
  /// every header that the format does not allow is refused, and so are tensors of more than 6 dimensions.
  static SafetensorsFile read(const std::string& path) {
    InputFile file(path);
    std::byte size_bytes[8];
    file.read(size_bytes);
    const auto header_size = check_header_size(size_bytes, file.size(), path);
    std::string json(static_cast<std::size_t>(header_size), '\0');
    file.read(std::as_writable_bytes(std::span(json)));
    SafetensorsFile result(json, file.size() - 8 - header_size, path);
    file.read({result.data_.get(), result.data_size_});
    return result;
  }

  /// The same from a file's bytes, which are copied; messages call it `name`.
  static SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& name) {
    const auto file_size = static_cast<std::int64_t>(bytes.size());
    if (file_size < 8) throw DataError(name, file_size, "the file is truncated: it ends here");
    const auto header_size = check_header_size(bytes.data(), file_size, name);
    const auto json = bytes.subspan(8, static_cast<std::size_t>(header_size));
    const auto data = bytes.subspan(8 + json.size());
    const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
    SafetensorsFile result(text, file_size - 8 - header_size, name);
    if (!data.empty()) std::memcpy(result.data_.get(), data.data(), data.size());
    return result;
  }

  /// The path that the file was read from.
  const std::string& path() const { return path_; }

  /// All tensors, in the order of their data.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  /// The tensor of this name, or null.
  const TensorView* find(std::string_view name) const {
    const auto found = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [&](std::size_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
    return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
  }

  /// The free texts that the file carries under `__metadata__`.
  const Metadata& metadata() const { return metadata_; }

 private:
  /// Parses the header and allocates the data, which the caller fills.
  SafetensorsFile(std::string_view json, std::int64_t data_size, const std::string& path)
      : path_(path), data_size_(static_cast<std::size_t>(data_size)) {
    auto header = detail::parse_header(json, static_cast<std::uint64_t>(data_size), path);
    metadata_ = std::move(header.metadata);
    data_.reset(new std::byte[data_size_]);
    for (auto& entry : header.entries) {
      tensors_.push_back({std::move(entry.name), entry.dtype, entry.shape,
                          std::span(data_.get() + entry.begin, data_.get() + entry.end)});
    }
    by_name_ = detail::names_in_order(tensors_, path, "safetensors: ");
  }

  /// The size of the header that these 8 bytes announce, if the file can hold it.
  static std::int64_t check_header_size(const std::byte* bytes, std::int64_t file_size,
                                        const std::string& path) {
    const auto size = detail::load_unsigned(bytes, 8);
    const auto fail = [&](const std::string& message) {
      throw DataError(path, 0, "safetensors: a header of " + std::to_string(size) + " bytes " + message);
    };
    if (size > detail::max_header_size)
      fail("exceeds the format's limit: not a safetensors file, or damaged");
    if (size > static_cast<std::uint64_t>(file_size - 8)) {
      fail("does not fit in a file of " + std::to_string(file_size) +
           ": truncated or not a safetensors file");
    }
    return static_cast<std::int64_t>(size);
  }

  std::string path_;
  std::shared_ptr<std::byte[]> data_;
  std::size_t data_size_ = 0;
  std::vector<TensorView> tensors_;
  std::vector<std::size_t> by_name_;  // indices of tensors_, sorted by name
  Metadata metadata_;
};

namespace detail {

/// The order in which tensors are stored: types from the largest to the smallest, so that each element is
/// aligned, and otherwise as given.
inline std::vector<std::size_t> storage_order(std::span<const TensorView> tensors) {
  return sorted_indices(tensors.size(), [&](std::size_t a, std::size_t b) {
    return info(tensors[a].dtype).size > info(tensors[b].dtype).size;
  });
}

/// The tensors as the header describes them when they are stored in this order.
inline std::vector<HeaderEntry> layout(std::span<const TensorView> tensors,
                                       const std::vector<std::size_t>& order, const std::string& path) {
  std::vector<HeaderEntry> entries;
  std::uint64_t end = 0;
  for (const auto index : order) {
    const auto& [name, dtype, shape, bytes] = tensors[index];
    const std::int64_t size = byte_size(shape, dtype);
    if (size < 0 || static_cast<std::uint64_t>(size) != bytes.size()) {
      throw DataError(path, -1,
                      "write_safetensors: tensor " + printable(name) + " of type " +
                          std::string(info(dtype).name) + " and shape " + to_string(shape) + " comes with " +
                          std::to_string(bytes.size()) + " bytes, which do not fit");
    }
    const std::uint64_t begin = std::exchange(end, end + bytes.size());
    entries.push_back({name, dtype, shape, begin, end});
  }
  return entries;
}

inline void check_names(std::span<const TensorView> tensors, const std::string& path) {
  names_in_order(tensors, path, "write_safetensors: ");
  for (const auto& tensor : tensors) {
    if (tensor.name != metadata_key) continue;
    throw DataError(path, -1, "write_safetensors: no tensor can be called '__metadata__'");
  }
}

}  // namespace detail

/// Writes the tensors to a safetensors file, which replaces `path` in one step: after a crash or on a full
/// disk the old file is still there, whole. Throws a `DataError` if two tensors have one name, a tensor's
/// bytes do not fit its shape and type, a text is not UTF-8, or the file cannot be written.
inline void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                              const Metadata& metadata = {}) {
  detail::check_names(tensors, path);
  const auto order = detail::storage_order(tensors);
  const auto entries = detail::layout(tensors, order, path);
  const std::string header = detail::write_header(entries, metadata, path);
  ReplacementFile file(path);
  file.write(std::as_bytes(std::span(header)));
  for (const auto index : order) file.write(tensors[index].bytes);
  file.commit();
}

namespace detail {

/// A line of a report: a heading, and the first few of the names that were added.
class NameList {
 public:
  explicit NameList(std::string heading) : heading_(std::move(heading)) {}

  void add(std::string_view name, const std::string& note) {
    constexpr int shown = 10;
    if (++count_ <= shown) names_ += (count_ > 1 ? ", " : "") + printable(name) + " (" + note + ")";
    if (count_ == shown + 1) names_ += ", …";
  }

  /// Empty if nothing was added.
  std::string text() const {
    return count_ == 0 ? "" : "\n  " + std::to_string(count_) + " " + heading_ + ": " + names_;
  }

 private:
  std::string heading_, names_;
  int count_ = 0;
};

}  // namespace detail

/// A tensor that a model asks of a file.
struct ExpectedTensor {
  std::string name;
  Shape shape;
};

/// What the tensors of an optimizer's state are called in a checkpoint, before their number.
inline constexpr std::string_view optimizer_state_prefix = "optimizer.state.";

/// Whether a tensor of a file is none of a model: the state of an optimizer, or what PyTorch's normalisation
/// layers count their steps in.
inline bool is_beside_the_model(std::string_view name) {
  constexpr std::string_view counter = "num_batches_tracked";
  return name.substr(0, optimizer_state_prefix.size()) == optimizer_state_prefix ||
         (name.size() >= counter.size() && name.substr(name.size() - counter.size()) == counter);
}

/// Checks that a file has exactly the expected tensors, in any order and of any element type; what is beside
/// the model is passed over. Throws a `DataError` that names those that are missing,
/// not expected or of another shape.
inline void check_tensors(const SafetensorsFile& file, std::span<const ExpectedTensor> expected) {
  detail::NameList missing("missing"), unexpected("not expected"), misshaped("of another shape");
  std::vector<bool> is_expected(file.tensors().size());
  for (const auto& [name, shape] : expected) {
    const TensorView* const found = file.find(name);
    if (found == nullptr) {
      missing.add(name, to_string(shape));
      continue;
    }
    is_expected[static_cast<std::size_t>(found - file.tensors().data())] = true;
    if (found->shape != shape) {
      misshaped.add(name, to_string(found->shape) + " in the file, " + to_string(shape) + " in the model");
    }
  }
  for (std::size_t i = 0; i < is_expected.size(); ++i) {
    const auto& tensor = file.tensors()[i];
    if (!is_expected[i] && !is_beside_the_model(tensor.name))
      unexpected.add(tensor.name, to_string(tensor.shape));
  }
  const std::string report = missing.text() + unexpected.text() + misshaped.text();
  if (!report.empty()) {
    throw DataError(file.path(), -1, "load: the file's tensors are not the model's" + report);
  }
}

}  // namespace taut::io
