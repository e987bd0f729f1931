#pragma once
// Reductions over any axes: sum, mean, max, min, argmax.

#include <string_view>

#include "compare.hpp"
#include "movement.hpp"

namespace taut {

/// Which axes a reduction runs over, as a flag for each axis; no axes named means all of them.
constexpr std::array<bool, max_rank> reduced_axes(std::string_view op, const Axes& axes, const Shape& from) {
  std::array<bool, max_rank> reduced{};
  for (const auto axis : axes) {
    bool& flag = reduced[static_cast<std::size_t>(normalize_axis(op, axis, from))];
    require(!flag, op, "an axis is named twice", from);
    flag = true;
  }
  if (axes.count == 0) reduced.fill(true);
  return reduced;
}

/// The shape with the reduced axes dropped, or kept with extent one.
constexpr Shape reduced_shape(std::string_view op, const Axes& axes, bool keepdim, const Shape& from) {
  const auto reduced = reduced_axes(op, axes, from);
  Shape to;
  for (int i = 0; i < from.rank(); ++i) {
    if (!reduced[static_cast<std::size_t>(i)])
      to.push_back(from[i]);
    else if (keepdim)
      to.push_back(1);
  }
  return to;
}

namespace op {

/// Σ x over some axes.
struct Sum {
  static constexpr std::string_view name = "sum";
  Axes axes;
  bool keepdim = false;

  constexpr Shape shape(const Shape& from) const { return reduced_shape(name, axes, keepdim, from); }
  constexpr std::int64_t flops(const Shape& from) const { return from.size(); }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    return [kept = reduced_shape(name, axes, true, x.shape()), from = x.shape()](T g) {
      return broadcast_to(reshape(std::move(g), kept), from);
    };
  }
};

/// The largest or smallest element over some axes. The gradient goes to all elements that attain it, in equal
/// shares, as PyTorch's `amax` does.
template <bool Largest> struct Extreme {
  static constexpr std::string_view name = Largest ? "max" : "min";
  Axes axes;
  bool keepdim = false;

  constexpr Shape shape(const Shape& from) const {
    const Shape to = reduced_shape(name, axes, keepdim, from);
    require(from.size() > 0 || to.size() == 0, name, "an empty axis has no extreme element", from);
    return to;
  }
  constexpr std::int64_t flops(const Shape& from) const { return from.size(); }
  template <AnyTensor T> auto pullback(Needs<1>, const T& out, const T& x) const {
    return [axes = axes, kept = reduced_shape(name, axes, true, x.shape()), out, x](const T& g) {
      const T attained = eq(x, reshape(out, kept));
      const T count = eval(Sum{axes, true}, attained);
      return attained * (reshape(g, kept) / count);
    };
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;

/// The index of the first largest element along one axis, NaN counting as largest; an integer tensor.
struct Argmax {
  static constexpr std::string_view name = "argmax";
  int axis = -1;
  bool keepdim = false;

  constexpr Shape shape(const Shape& from) const {
    const int a = normalize_axis(name, axis, from);
    require(from[a] > 0, "argmax: the axis is empty", from);
    return reduced_shape(name, Axes{a}, keepdim, from);
  }
  constexpr std::int64_t flops(const Shape& from) const { return from.size(); }
};

}  // namespace op

/// Σ x over `axes` (all, if none is named). `keepdim` keeps them with extent one. Throws `ShapeError` if
/// there is no such axis or one is named twice; so do the other reductions.
template <AnyTensor X> constexpr auto sum(X&& x, Axes axes = {}, bool keepdim = false) {
  return eval(op::Sum{axes, keepdim}, std::forward<X>(x));
}

/// The arithmetic mean of x over `axes` (all, if none is named); NaN over no elements.
template <AnyTensor X> constexpr auto mean(X&& x, Axes axes = {}, bool keepdim = false) {
  const Shape from = x.shape(), to = reduced_shape("mean", axes, keepdim, from);
  const double count = static_cast<double>(from.size()) / static_cast<double>(to.size() > 0 ? to.size() : 1);
  return sum(std::forward<X>(x), axes, keepdim) / count;
}

/// The largest element over `axes` (all, if none is named). Ties share the gradient equally; NaN propagates.
/// Throws `ShapeError` if there are none to choose from.
template <AnyTensor X> constexpr auto max(X&& x, Axes axes = {}, bool keepdim = false) {
  return eval(op::Max{axes, keepdim}, std::forward<X>(x));
}

/// The smallest element over `axes` (all, if none is named). Ties share the gradient equally; NaN propagates.
/// Throws `ShapeError` if there are none to choose from.
template <AnyTensor X> constexpr auto min(X&& x, Axes axes = {}, bool keepdim = false) {
  return eval(op::Min{axes, keepdim}, std::forward<X>(x));
}

/// The index of the first largest element along `axis`, an integer tensor (`T::Index`).
template <AnyTensor X> constexpr auto argmax(const X& x, int axis = -1, bool keepdim = false) {
  return eval(op::Argmax{axis, keepdim}, x);
}

}  // namespace taut
