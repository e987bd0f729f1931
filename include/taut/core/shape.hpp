#pragma once
// `Shape`: the extents of a tensor, usable in constant expressions and as a template argument, and the
// rules that several operators share (broadcasting, axes).

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

#include "error.hpp"

namespace taut {

/// The highest rank a tensor can have.
inline constexpr int max_rank = 6;

namespace detail {

/// A short list of integers: what `Shape` and `Axes` have in common. Structural, so its members are public.
struct IntList {
  std::int64_t items[max_rank] = {};
  int count = 0;

  constexpr IntList() = default;
  constexpr IntList(std::initializer_list<std::int64_t> values) {
    for (const auto value : values) push_back(value);
  }

  constexpr void push_back(std::int64_t value) {
    if (count == max_rank) throw ShapeError("shape: a tensor has at most 6 dimensions");
    items[count++] = value;
  }

  constexpr const std::int64_t* begin() const { return items; }
  constexpr const std::int64_t* end() const { return items + count; }
  constexpr bool operator==(const IntList&) const = default;
};

[[gnu::cold]] inline std::string to_string(const IntList& list) {
  std::string text = "[";
  for (int i = 0; i < list.count; ++i) text += (i ? ", " : "") + std::to_string(list.items[i]);
  return text + "]";
}

}  // namespace detail

/// The extents of a tensor, outermost first: `Shape{64, 3, 32, 32}`. Rank 0 is a scalar of one element.
struct Shape : detail::IntList {
  using detail::IntList::IntList;

  constexpr int rank() const { return count; }

  /// The number of elements: the product of the extents, 1 for rank 0.
  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (const auto extent : *this) n *= extent;
    return n;
  }

  /// The extent of an axis; negative axes count from the end.
  constexpr std::int64_t operator[](int axis) const { return items[axis < 0 ? count + axis : axis]; }
  constexpr std::int64_t& operator[](int axis) { return items[axis < 0 ? count + axis : axis]; }

  constexpr bool operator==(const Shape&) const = default;
};

/// A list of axes, as reductions and permutations take it. Negative axes count from the end.
struct Axes : detail::IntList {
  using detail::IntList::IntList;
  constexpr bool operator==(const Axes&) const = default;
};

inline std::string to_string(const Shape& shape) {
  return to_string(static_cast<const detail::IntList&>(shape));
}
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

namespace detail {

[[noreturn, gnu::cold]] inline void shape_error(std::string_view op, std::string_view message,
                                                std::initializer_list<const Shape*> shapes) {
  std::string text(op);
  text += op.empty() ? "" : ": ";
  text += message;
  const char* separator = ": ";
  for (const Shape* shape : shapes) {
    text += separator + to_string(*shape);
    separator = " x ";
  }
  throw ShapeError(text);
}

}  // namespace detail

/// Throws a `ShapeError` made of the message and the shapes unless `ok`. In a constant expression a failure
/// is a compile error whose diagnostic shows this call, and so the message.
template <std::same_as<Shape>... Shapes>
constexpr void require(bool ok, const char* message, const Shapes&... shapes) {
  if (!ok) detail::shape_error("", message, {&shapes...});
}

/// The same for rules that several operators share: the message starts with the operator's name.
template <std::same_as<Shape>... Shapes>
constexpr void require(bool ok, std::string_view op, const char* message, const Shapes&... shapes) {
  if (!ok) detail::shape_error(op, message, {&shapes...});
}

/// Throws `ShapeError` if an extent is negative.
constexpr void require_extents(std::string_view op, const Shape& shape) {
  for (const auto extent : shape) require(extent >= 0, op, "an extent is negative", shape);
}

/// The shape that `a` and `b` broadcast to, by NumPy's rule: aligned at the last axis, extents of one
/// stretch.
constexpr Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int axis = -1; axis >= -shorter.rank(); --axis) {
    const auto x = longer[axis], y = shorter[axis];
    require(x == y || x == 1 || y == 1, op, "the operands' shapes do not broadcast", a, b);
    result[axis] = x == 1 ? y : x;
  }
  return result;
}

/// The shape that any number of shapes broadcast to.
template <std::same_as<Shape>... Shapes>
constexpr Shape broadcast_all(std::string_view op, const Shapes&... shapes) {
  Shape result;
  ((result = broadcast_shapes(op, result, shapes)), ...);
  return result;
}

namespace detail {
[[noreturn, gnu::cold]] inline void axis_error(std::string_view op, std::int64_t axis, const Shape& shape) {
  shape_error(op, "there is no axis " + std::to_string(axis) + " in the operand", {&shape});
}
}  // namespace detail

/// `axis` counted from the front, checked against `rank`.
constexpr int normalize_axis(std::string_view op, std::int64_t axis, const Shape& shape) {
  if (axis < -shape.rank() || axis >= shape.rank()) detail::axis_error(op, axis, shape);
  return static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
}

}  // namespace taut
