#pragma once
// Operators that move elements without computing. Each one's gradient is another of them.

#include <algorithm>
#include <string_view>

#include "operator.hpp"

namespace taut {

namespace detail {
/// The bytes that an operator moves which returns an operand of the result's shape as it is.
constexpr std::int64_t moved_unless_same(const DenseSize& result, const DenseSize& x) {
  return result.shape == x.shape ? 0 : result.bytes() + x.bytes();
}
}  // namespace detail

namespace op {

/// The same elements in row-major order under another shape.
struct Reshape {
  static constexpr std::string_view name = "reshape";
  Shape to;

  constexpr Shape shape(const Shape& from) const {
    require_extents(name, to);
    require(from.size() == to.size(), "reshape: the number of elements differs", from, to);
    return to;
  }
  constexpr std::int64_t bytes(const DenseSize&, const DenseSize&) const { return 0; }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    return [from = x.shape()](T g) { return eval(Reshape{from}, std::move(g)); };
  }
};

/// Axis i of the result is axis `order[i]` of the operand.
struct Permute {
  static constexpr std::string_view name = "permute";
  Axes order;

  constexpr Shape shape(const Shape& from) const {
    require(order.count == from.rank(), "permute: the order must name each axis of the operand once", from);
    Shape to = from;
    bool seen[max_rank] = {};
    for (int i = 0; i < from.rank(); ++i) {
      const int axis = normalize_axis(name, order.items[i], from);
      require(!seen[axis], "permute: the order must name each axis of the operand once", from);
      seen[axis] = true;
      to[i] = from[axis];
    }
    return to;
  }
  constexpr Permute inverse() const {
    Axes back = order;
    for (int i = 0; i < order.count; ++i) {
      const auto axis = order.items[i];
      back.items[axis < 0 ? axis + order.count : axis] = i;
    }
    return {back};
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T&) const {
    return [back = inverse()](T g) { return eval(back, std::move(g)); };
  }
};

/// Repeats the operand along new leading axes and along axes of extent one.
struct BroadcastTo {
  static constexpr std::string_view name = "broadcast_to";
  Shape to;

  constexpr Shape shape(const Shape& from) const {
    require_extents(name, to);
    require(from.rank() <= to.rank() && broadcast_shapes(name, from, to) == to,
            "broadcast_to: the operand does not broadcast to the shape", from, to);
    return to;
  }
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize& x) const {
    return detail::moved_unless_same(result, x);
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const;
};

/// Sums over the axes along which `to` would have been repeated to give the operand's shape.
struct SumTo {
  static constexpr std::string_view name = "sum_to";
  Shape to;

  constexpr Shape shape(const Shape& from) const {
    require(to.rank() <= from.rank() && broadcast_shapes(name, from, to) == from,
            "sum_to: the shape does not broadcast to the operand's", from, to);
    return to;
  }
  constexpr std::int64_t flops(const Shape& from) const { return from == to ? 0 : from.size(); }
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize& x) const {
    return detail::moved_unless_same(result, x);
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    return [from = x.shape()](T g) { return eval(BroadcastTo{from}, std::move(g)); };
  }
};

template <AnyTensor T> auto BroadcastTo::pullback(Needs<1>, const T&, const T& x) const {
  return [from = x.shape()](T g) { return eval(SumTo{from}, std::move(g)); };
}

/// The elements `start`, `start + step`, … before `stop` of one axis.
struct Slice {
  static constexpr std::string_view name = "slice";
  int axis = 0;
  std::int64_t start = 0, stop = 0, step = 1;

  constexpr Shape shape(const Shape& from) const {
    Shape to = from;
    const int a = normalize_axis(name, axis, from);
    require(step >= 1, "slice: the step must be at least 1", from);
    if (!(0 <= start && start <= stop && stop <= from[a])) bounds_error(from, from[a]);
    to[a] = stop > start ? (stop - start - 1) / step + 1 : 0;
    return to;
  }
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize&) const { return 2 * result.bytes(); }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const;

 private:
  [[noreturn, gnu::cold]] void bounds_error(const Shape& from, std::int64_t extent) const {
    detail::shape_error(name,
                        "needs 0 <= start <= stop <= " + std::to_string(extent) +
                            " (counted from the front), got start " + std::to_string(start) + " and stop " +
                            std::to_string(stop),
                        {&from});
  }
};

/// Zeros of extent `extent` along one axis, with the operand put at `start`, `start + step`, …: the adjoint
/// of `Slice`.
struct Unslice {
  static constexpr std::string_view name = "unslice";
  int axis = 0;
  std::int64_t start = 0, step = 1, extent = 0;

  constexpr Shape shape(const Shape& from) const {
    Shape to = from;
    const int a = normalize_axis(name, axis, from);
    require(step >= 1 && start >= 0 &&
                (from[a] == 0 || (start < extent && from[a] - 1 <= (extent - 1 - start) / step)),
            "unslice: the operand does not fit the extent", from);
    to[a] = extent;
    return to;
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    const auto stop = std::min(extent, start + x.shape()[axis] * step);
    return [back = Slice{axis, start, stop, step}](T g) { return eval(back, g); };
  }
};

template <AnyTensor T> auto Slice::pullback(Needs<1>, const T&, const T& x) const {
  return [back = Unslice{axis, start, step, x.shape()[axis]}](T g) { return eval(back, g); };
}

/// The operands one after the other along one axis; all other extents agree.
struct Concat {
  static constexpr std::string_view name = "concat";
  int axis = 0;

  template <std::same_as<Shape>... Shapes>
  constexpr Shape shape(const Shape& first, const Shapes&... rest) const {
    Shape to = first;
    const int a = normalize_axis(name, axis, first);
    [[maybe_unused]] const auto append = [&](const Shape& next) {
      Shape same = next;
      if (next.rank() == first.rank()) same[a] = first[a];
      require(same == first, "concat: the operands must agree in all other axes", first, next);
      to[a] += next[a];
    };
    (append(rest), ...);
    return to;
  }
  template <AnyTensor T, std::same_as<T>... Ts>
  auto pullback(Needs<static_cast<int>(sizeof...(Ts))> needs, const T&, const Ts&... xs) const {
    constexpr auto n = sizeof...(Ts);
    const int a = normalize_axis(name, axis, std::get<0>(std::array{xs.shape()...}));
    return [needs, a, extents = std::array<std::int64_t, n>{xs.shape()[a]...}](const T& g) {
      std::array<T, n> gradients;
      std::int64_t start = 0;
      for (std::size_t i = 0; i < n; start += extents[i], ++i)
        if (needs[static_cast<int>(i)]) gradients[i] = eval(Slice{a, start, start + extents[i]}, g);
      return gradients;
    };
  }
};

}  // namespace op

namespace detail {

/// `to` with an extent of -1 replaced by what remains of `from`.
constexpr Shape resolve_reshape(const Shape& from, Shape to) {
  std::int64_t known = 1;
  int open = -1;
  for (int i = 0; i < to.rank(); ++i) {
    require(to[i] != -1 || open < 0, "reshape: one extent at most may be -1", from, to);
    if (to[i] == -1)
      open = i;
    else
      known *= to[i];
  }
  if (open >= 0) {
    require(known > 0 && from.size() % known == 0, "reshape: the number of elements differs", from, to);
    to[open] = from.size() / known;
  }
  return to;
}

constexpr Shape flattened(const Shape& from, int start) {
  Shape to;
  std::int64_t rest = 1;
  require(start >= 0 && start <= from.rank(), "flatten: the first axis to merge is out of range", from);
  for (int i = 0; i < from.rank(); ++i)
    if (i < start)
      to.push_back(from[i]);
    else
      rest *= from[i];
  to.push_back(rest);
  return to;
}

/// The order of axes in which two have changed places.
constexpr Axes exchanged(const Shape& from, int axis0, int axis1) {
  Axes order;
  for (int i = 0; i < from.rank(); ++i) order.push_back(i);
  const int a = normalize_axis("transpose", axis0, from), b = normalize_axis("transpose", axis1, from);
  std::swap(order.items[a], order.items[b]);
  return order;
}

constexpr op::Slice resolve_slice(const Shape& from, int axis, std::int64_t start, std::int64_t stop,
                                  std::int64_t step) {
  const auto extent = from[normalize_axis("slice", axis, from)];
  return {axis, start < 0 ? start + extent : start, stop < 0 ? stop + extent : stop, step};
}

}  // namespace detail

/// The same elements in row-major order under the shape `to`. One extent may be -1: it is what remains.
/// Throws `ShapeError` if the number of elements differs.
template <AnyTensor X> constexpr auto reshape(X&& x, Shape to) {
  const Shape from = x.shape();
  return eval(op::Reshape{detail::resolve_reshape(from, to)}, std::forward<X>(x));
}

/// All axes from `start` on become one: `flatten(images)` is [N, C·H·W] of [N, C, H, W].
template <AnyTensor X> constexpr auto flatten(X&& x, int start = 1) {
  const Shape from = x.shape();
  return eval(op::Reshape{detail::flattened(from, start)}, std::forward<X>(x));
}

/// Axis i of the result is axis `order[i]` of x. Throws `ShapeError` unless `order` names each axis once.
template <AnyTensor X> constexpr auto permute(X&& x, Axes order) {
  return eval(op::Permute{order}, std::forward<X>(x));
}

/// Exchanges two axes, by default the last two: the transpose of a matrix. Throws `ShapeError` if there is no
/// such axis.
template <AnyTensor X> constexpr auto transpose(X&& x, int axis0 = -2, int axis1 = -1) {
  const Shape from = x.shape();
  return eval(op::Permute{detail::exchanged(from, axis0, axis1)}, std::forward<X>(x));
}

/// Repeats x along new leading axes and along axes of extent one, to the shape `to`. Throws `ShapeError` if x
/// does not broadcast to it.
template <AnyTensor X> constexpr auto broadcast_to(X&& x, Shape to) {
  return eval(op::BroadcastTo{to}, std::forward<X>(x));
}

/// Sums x over the axes along which a tensor of shape `to` broadcasts to it: the adjoint of `broadcast_to`.
/// Throws `ShapeError` if it does not.
template <AnyTensor X> constexpr auto sum_to(X&& x, Shape to) {
  return eval(op::SumTo{to}, std::forward<X>(x));
}

/// x[start:stop:step] along one axis. Negative `start` and `stop` count from the end. Throws `ShapeError`
/// unless 0 <= start <= stop <= the axis's extent, and step >= 1.
template <AnyTensor X>
constexpr auto slice(X&& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  const Shape from = x.shape();
  return eval(detail::resolve_slice(from, axis, start, stop, step), std::forward<X>(x));
}

/// The tensors one after the other along `axis`. Throws `ShapeError` if they differ in another extent.
template <AnyTensor... Xs> constexpr auto concat(int axis, Xs&&... xs) {
  return eval(op::Concat{axis}, std::forward<Xs>(xs)...);
}

}  // namespace taut
