#pragma once
// `CpuArray`: the leaf that computes on the CPU. A handle of a pooled, reference-counted buffer and a shape;
// row-major, but for images, which have layouts of their own (layout.hpp). Kernels stand in the other headers
// of this folder, under the names of the operators' headers.

#include <cstdint>
#include <span>
#include <vector>

#include "../core/pool.hpp"
#include "../core/random.hpp"
#include "../op/operator.hpp"
#include "layout.hpp"
#include "parallel.hpp"

namespace taut {

namespace cpu {

/// The bytes that a dense array takes. Throws `ShapeError` if an extent is negative or they are too many.
inline std::size_t byte_count(const Shape& shape, std::size_t element_size) {
  require_extents("array", shape);
  std::size_t bytes = element_size;
  for (const auto extent : shape) {
    require(!__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes),
            "array: there are more elements than memory can address", shape);
  }
  return bytes;
}

/// Throws `ShapeError` unless `count` values fill the shape.
inline void check_count(std::string_view function, std::size_t count, const Shape& shape) {
  byte_count(shape, 1);
  if (static_cast<std::int64_t>(count) != shape.size())
    taut::detail::shape_error(function, std::to_string(count) + " values were given for the shape", {&shape});
}

}  // namespace cpu

/// An array of E on the CPU. Copies share the buffer, which nobody changes while it is shared.
template <class E> class BasicCpuArray {
 public:
  using tensor_tag = void;
  using Element = E;
  using Index = BasicCpuArray<std::int64_t>;

  /// No elements and no buffer: a place-holder to assign to.
  BasicCpuArray() : shape_{0} {}

  /// An array whose elements the caller is about to write.
  static BasicCpuArray uninitialized(const Shape& shape, cpu::Layout layout = cpu::Layout::dense) {
    return BasicCpuArray(cpu::Buffer::allocate(cpu::byte_count(shape, sizeof(E))), shape, layout);
  }

  /// Every element is `value`.
  static BasicCpuArray full(const Shape& shape, E value) {
    return generate(shape, [value](std::int64_t) { return value; });
  }
  static BasicCpuArray zeros(const Shape& shape) { return full(shape, E(0)); }
  static BasicCpuArray ones(const Shape& shape) { return full(shape, E(1)); }

  /// Copies `values`, in row-major order. Throws `ShapeError` if their number is not the shape's.
  static BasicCpuArray from_host(std::span<const E> values, const Shape& shape) {
    cpu::check_count("from_host", values.size(), shape);
    return generate(shape, [from = values.data()](std::int64_t i) { return from[i]; });
  }

  /// Independent samples of the uniform distribution on [low, high).
  static BasicCpuArray uniform(const Shape& shape, E low, E high, Rng& rng) {
    cpu::byte_count(shape, sizeof(E));  // a shape that is refused draws nothing
    const auto stream = rng.draw(static_cast<std::uint64_t>(shape.size()));
    return generate(shape, [=](std::int64_t i) {
      return RandomStream::affine(stream.template uniform<E>(static_cast<std::uint64_t>(i)), low, high - low);
    });
  }

  /// Independent samples of the normal distribution with the given mean and standard deviation.
  static BasicCpuArray normal(const Shape& shape, E mean, E deviation, Rng& rng) {
    cpu::byte_count(shape, sizeof(E));  // a shape that is refused draws nothing
    const auto stream = rng.draw(static_cast<std::uint64_t>(shape.size()));
    return generate_parts(shape, [=](std::int64_t begin, std::int64_t end, E* to) {
      stream.normals(static_cast<std::uint64_t>(begin), static_cast<std::size_t>(end - begin), to + begin);
      for (auto i = begin; i < end; ++i) to[i] = RandomStream::affine(to[i], mean, deviation);
    });
  }

  const Shape& shape() const { return shape_; }

  /// The elements in row-major order, converted to it if they lie otherwise. Valid while a copy of this array
  /// lives, as are the following ones.
  const E* data() const { return data(cpu::Layout::dense); }

  /// The layout in which the elements lie.
  cpu::Layout layout() const { return layout_; }

  /// How many conversions of layouts there have been so far, of all arrays; for profiles.
  static std::int64_t layout_conversions() { return cpu::conversions().count; }

  /// The elements in a layout, converted to it if they lie otherwise.
  const E* data(cpu::Layout layout) const {
    const auto* bytes = layout == layout_ ? buffer_.data() : in_layout(layout).data();
    return reinterpret_cast<const E*>(bytes);
  }

  /// The elements as a view, valid while a copy of this array lives.
  std::span<const E> span() const { return {data(), static_cast<std::size_t>(shape_.size())}; }

  /// The elements in row-major order.
  std::vector<E> to_host() const {
    const E* from = data();
    return {from, from + shape_.size()};
  }

  /// The only element. Throws `ShapeError` if there are none or more.
  E item() const {
    require(shape_.size() == 1, "item: takes a tensor of one element", shape_);
    return *data();
  }

  /// Whether no other handle shares the buffer, so that a kernel that owns this one may overwrite it.
  bool unique() const { return buffer_.unique(); }

  /// For kernels: write access to a buffer that nobody else can see, in this array's layout.
  E* mutable_data() {
    buffer_.drop_forms();
    return reinterpret_cast<E*>(buffer_.data());
  }

  /// For kernels: where the elements lie, and other forms of them are kept.
  const cpu::Buffer& buffer() const { return buffer_; }

  /// For kernels: `make()`, a dense array of `shape` in memory of its own that depends on this array only,
  /// kept under `key` with the elements until these change.
  template <class F> BasicCpuArray kept(const cpu::FormKey& key, const Shape& shape, const F& make) const {
    return BasicCpuArray(buffer_.form_or(key, [&] { return make().buffer_; }), shape);
  }

  /// The same elements in row-major order under another shape of the same size.
  BasicCpuArray with_shape(const Shape& shape) const& {
    return BasicCpuArray(in_layout(cpu::Layout::dense), shape);
  }
  BasicCpuArray with_shape(const Shape& shape) && {
    if (layout_ != cpu::Layout::dense) return std::as_const(*this).with_shape(shape);
    return BasicCpuArray(std::move(buffer_), shape);
  }

 private:
  BasicCpuArray(cpu::Buffer buffer, const Shape& shape, cpu::Layout layout = cpu::Layout::dense)
      : buffer_(std::move(buffer)), shape_(shape), layout_(layout) {}

  cpu::Buffer in_layout(cpu::Layout layout) const {
    if (!buffer_ || cpu::same_order(shape_, layout, layout_)) return buffer_;
    cpu::FormKey key{static_cast<std::uint64_t>(layout), {}};
    std::copy(shape_.begin(), shape_.end(), key.extents);
    return buffer_.form_or(key, [&] {
      auto converted = cpu::Buffer::allocate(buffer_.bytes());
      cpu::convert_layout(shape_, reinterpret_cast<const E*>(buffer_.data()), layout_,
                          reinterpret_cast<E*>(converted.data()), layout);
      return converted;
    });
  }

  template <class F> static BasicCpuArray generate(const Shape& shape, F element) {
    return generate_parts(shape, [=](std::int64_t begin, std::int64_t end, E* to) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = element(i);
    });
  }

  /// `part(begin, end, to)` writes the elements [begin, end) of `to`.
  template <class F> static BasicCpuArray generate_parts(const Shape& shape, const F& part) {
    auto array = uninitialized(shape);
    E* to = array.mutable_data();
    cpu::parallel_for(shape.size(), cpu::default_grain,
                      [&](std::int64_t begin, std::int64_t end) { part(begin, end, to); });
    return array;
  }

  cpu::Buffer buffer_;
  Shape shape_;
  cpu::Layout layout_ = cpu::Layout::dense;
};

using CpuArray = BasicCpuArray<float>;

namespace cpu {

template <class X> inline constexpr bool is_array = false;
template <class E> inline constexpr bool is_array<BasicCpuArray<E>> = true;

/// Operands of one element type, all of them arrays.
template <class X, class... Xs>
concept SameArrays = is_array<std::remove_cvref_t<X>> &&
    (std::same_as<std::remove_cvref_t<X>, std::remove_cvref_t<Xs>>&&...);

}  // namespace cpu
}  // namespace taut
