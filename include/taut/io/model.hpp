#pragma once
// Models to and from safetensors files, under PyTorch's names.

#include <string>
#include <vector>

#include "../nn/model.hpp"
#include "safetensors.hpp"

namespace taut::io {

namespace detail {

/// The numbers as elements of type E; themselves if they are.
template <class E, class V> std::vector<E> as_elements(std::vector<V> values) {
  if constexpr (std::same_as<E, V>)
    return values;
  else
    return {values.begin(), values.end()};
}

/// Tensors on their way to a file, all with elements of type E.
template <class E> struct StoredTensors {
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  std::vector<std::vector<E>> values;

  template <class V> void add(std::string name, const Shape& shape, std::vector<V> numbers) {
    names.push_back(std::move(name)), shapes.push_back(shape);
    values.push_back(as_elements<E>(std::move(numbers)));
  }

  /// Writes them. What is here is only good for that.
  void write(const std::string& path, const Metadata& metadata) {
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < names.size(); ++i)
      views.push_back({names[i], dtype_of<E>, shapes[i], little_endian_bytes(std::span(values[i]))});
    write_safetensors(path, views, metadata);
  }
};

/// All tensors of a model, buffers included, in its wide type, which has all values of the narrow one.
template <Model M> auto stored_tensors(const M& model) {
  StoredTensors<typename Widened<TensorOf<M>>::Element> stored;
  for_each_tensor(model, [&](std::string name, const auto& tensor) {
    stored.add(std::move(name), tensor.shape(), tensor.to_host());
  });
  return stored;
}

}  // namespace detail

/// Writes all tensors of a model, buffers included, under their names (`layer1.0.conv1.weight`). Elements
/// that are narrower than `float` are written as that. The file replaces `path` in one step, so a crash
/// leaves the old one whole. Throws `DataError` if it cannot be written.
template <Model M> void save(const M& model, const std::string& path, const Metadata& metadata = {}) {
  detail::stored_tensors(model).write(path, metadata);
}

namespace detail {

/// The tensors that a model asks of a file.
template <Model M> std::vector<ExpectedTensor> expected_tensors(const M& model) {
  std::vector<ExpectedTensor> expected;
  for_each_tensor(model, [&](std::string name, const auto& tensor) {
    expected.push_back({std::move(name), tensor.shape()});
  });
  return expected;
}

/// Gives a model the values of a file that has been found to have them all.
template <Model M> void assign_tensors(M& model, const SafetensorsFile& file) {
  for_each_tensor(model, [&]<class T>(const std::string& name, T& tensor) {
    const auto values =
        as_elements<typename T::Element>(file.find(name)->template values<typename Widened<T>::Element>());
    if constexpr (is_grad<T>)
      tensor.assign(T::Inner::from_host(values, tensor.shape()));
    else
      tensor = T::from_host(values, tensor.shape());
  });
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
