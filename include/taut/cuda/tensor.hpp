#pragma once
// `CudaTensor`: the leaf that computes on a GPU. A handle of pooled, reference-counted device memory, a shape
// and a layout (layout.hpp). Everything runs on the calling thread's current stream; the host waits only for
// what it reads. Kernels stand in the other headers of this folder, under the names of the operators'
// headers.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../core/bfloat16.hpp"
#include "../op/operator.hpp"
#include "../op/widened.hpp"
#include "buffer.hpp"
#include "copy.hpp"
#include "generate.hpp"
#include "recording.hpp"

namespace taut {

namespace cuda {

/// The bytes that a tensor takes. Throws `ShapeError` if an extent is negative or they are too many.
inline std::size_t byte_count(const Shape& shape, std::size_t element_size) {
  require_extents("tensor", shape);
  std::size_t bytes = element_size;
  for (const auto extent : shape)
    require(!__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes),
            "tensor: there are more elements than memory can address", shape);
  return bytes;
}

/// Throws `ShapeError` unless `count` values fill the shape.
inline void check_count(std::string_view function, std::size_t count, const Shape& shape) {
  byte_count(shape, 1);
  if (static_cast<std::int64_t>(count) != shape.size())
    taut::detail::shape_error(function, std::to_string(count) + " values were given for the shape", {&shape});
}

}  // namespace cuda

/// A tensor of E, float or bfloat16 (or std::int64_t for indices), on a GPU. Copies share the memory, which
/// nobody changes while it is shared. What makes one throws `DeviceError` where there is no device. A tensor
/// that goes to another thread, and so to another stream, has to be complete by then: that thread may use it
/// once `cuda::synchronize(cuda::current_stream())` has returned in the one that made it.
template <class E> class BasicCudaTensor {
 public:
  using tensor_tag = void;
  using Element = E;
  using Index = BasicCudaTensor<std::int64_t>;

  /// No elements and no memory: a place-holder to assign to.
  BasicCudaTensor() : shape_{0} {}

  /// A tensor whose elements the caller is about to write.
  static BasicCudaTensor uninitialized(const Shape& shape, cuda::Layout layout = cuda::Layout::dense) {
    return BasicCudaTensor(cuda::Buffer::allocate(cuda::byte_count(shape, sizeof(E))), shape, layout);
  }

  /// Every element is `value`.
  static BasicCudaTensor full(const Shape& shape, E value) {
    auto tensor = uninitialized(shape);
    cuda::launch_fill(shape.size(), value, tensor.mutable_data(), cuda::current_stream());
    return tensor;
  }
  static BasicCudaTensor zeros(const Shape& shape, cuda::Layout layout = cuda::Layout::dense) {
    auto tensor = uninitialized(shape, layout);
    cuda::fill_bytes(tensor.mutable_data(), 0, tensor.bytes(), cuda::current_stream());
    return tensor;
  }
  static BasicCudaTensor ones(const Shape& shape) { return full(shape, static_cast<E>(1)); }

  /// Copies `values`, in row-major order, without waiting for the device. Throws `ShapeError` if their number
  /// is not the shape's.
  static BasicCudaTensor from_host(std::span<const E> values, const Shape& shape) {
    cuda::check_count("from_host", values.size(), shape);
    auto tensor = uninitialized(shape);
    cuda::upload(tensor.mutable_data(), values.data(), tensor.bytes(), cuda::current_stream());
    return tensor;
  }

  /// Independent samples of the uniform distribution on [low, high): the CPU's, rounded to E.
  static BasicCudaTensor uniform(const Shape& shape, E low, E high, Rng& rng) {
    auto tensor = uninitialized(shape);
    const auto numbers = cuda::at_replay(rng.draw(static_cast<std::uint64_t>(shape.size())));
    cuda::launch_uniform(shape.size(), float(low), float(high), numbers, tensor.mutable_data(),
                         cuda::current_stream());
    return tensor;
  }

  /// Independent samples of the normal distribution with the given mean and standard deviation: the CPU's,
  /// rounded to E.
  static BasicCudaTensor normal(const Shape& shape, E mean, E deviation, Rng& rng) {
    auto tensor = uninitialized(shape);
    const auto numbers = cuda::at_replay(rng.draw(static_cast<std::uint64_t>(shape.size())));
    cuda::launch_normal(shape.size(), float(mean), float(deviation), numbers, tensor.mutable_data(),
                        cuda::current_stream());
    return tensor;
  }

  const Shape& shape() const { return shape_; }

  /// The layout in which the elements lie.
  cuda::Layout layout() const { return layout_; }

  /// Where the elements lie on the device, in this tensor's layout; valid in the current stream for what is
  /// put into it while a copy of this tensor lives.
  const E* data() const { return reinterpret_cast<const E*>(buffer_.data()); }

  /// What the elements take, in bytes.
  std::size_t bytes() const { return static_cast<std::size_t>(shape_.size()) * sizeof(E); }

  /// The same tensor with its elements in a layout: itself, or a copy that is converted to it.
  BasicCudaTensor in_layout(cuda::Layout layout) const {
    if (layout == layout_) return *this;
    if (cuda::same_order(shape_, layout, layout_)) return BasicCudaTensor(buffer_, shape_, layout);
    auto converted = uninitialized(shape_, layout);
    cuda::copy_strided(shape_, layout, data(), cuda::Strides(shape_, layout_), converted.mutable_data(),
                       cuda::Strides(shape_, layout));
    return converted;
  }

  /// The same tensor with its elements in row-major order.
  BasicCudaTensor dense() const { return in_layout(cuda::Layout::dense); }

  /// The elements in row-major order, once the device has computed them.
  std::vector<E> to_host() const {
    std::vector<E> values(static_cast<std::size_t>(shape_.size()));
    if (values.empty()) return values;
    const auto stream = cuda::current_stream();
    cuda::leave_capture(stream, "reads a tensor on the host");
    const BasicCudaTensor ordered = dense();
    cuda::copy_to_host(values.data(), ordered.data(), bytes(), stream);
    cuda::synchronize(stream);
    return values;
  }

  /// The only element, once the device has computed it. Throws `ShapeError` if there are none or more.
  E item() const {
    require(shape_.size() == 1, "item: takes a tensor of one element", shape_);
    return to_host()[0];
  }

  /// Whether no other handle shares the memory, so that a kernel that owns this one may overwrite it.
  bool unique() const { return buffer_.unique(); }

  /// For kernels: write access to memory that nobody else can see, in this tensor's layout.
  E* mutable_data() { return reinterpret_cast<E*>(buffer_.mutable_data()); }

  /// The same elements in row-major order under another shape of the same size.
  BasicCudaTensor with_shape(const Shape& shape) const& { return BasicCudaTensor(dense().buffer_, shape); }
  BasicCudaTensor with_shape(const Shape& shape) && {
    if (layout_ != cuda::Layout::dense) return std::as_const(*this).with_shape(shape);
    return BasicCudaTensor(std::move(buffer_), shape);
  }

 private:
  BasicCudaTensor(cuda::Buffer buffer, const Shape& shape, cuda::Layout layout = cuda::Layout::dense)
      : buffer_(std::move(buffer)), shape_(shape), layout_(layout) {}

  cuda::Buffer buffer_;
  Shape shape_;
  cuda::Layout layout_ = cuda::Layout::dense;
};

using CudaTensor = BasicCudaTensor<float>;

template <> struct WideLeaf<BasicCudaTensor<bfloat16>> { using type = CudaTensor; };

namespace cuda {

template <class X> inline constexpr bool is_tensor = false;
template <class E> inline constexpr bool is_tensor<BasicCudaTensor<E>> = true;

/// Operands of one element type, all of them tensors on the device.
template <class X, class... Xs>
concept SameTensors = is_tensor<std::remove_cvref_t<X>> &&
    (std::same_as<std::remove_cvref_t<X>, std::remove_cvref_t<Xs>>&&...);

}  // namespace cuda
}  // namespace taut
