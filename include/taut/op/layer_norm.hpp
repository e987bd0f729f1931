#pragma once
// Layer normalisation (Ba, Kiros and Hinton, "Layer Normalization", 2016), and the operators that its
// derivatives are made of.

#include <array>
#include <string_view>

#include "arithmetic.hpp"
#include "movement.hpp"
#include "reduce.hpp"
#include "unary.hpp"

namespace taut {

namespace detail {

/// The last `count` axes.
constexpr Axes last_axes(int count) {
  Axes axes;
  for (int i = -count; i < 0; ++i) axes.push_back(i);
  return axes;
}

/// The last `count` extents of a shape.
constexpr Shape last_extents(const Shape& x, int count) {
  Shape last;
  for (int i = x.rank() - count; i < x.rank(); ++i) last.push_back(x[i]);
  return last;
}

/// x̂ = (x - mean) / √(variance + eps) over the last `count` axes, and 1 / √(variance + eps).
template <AnyTensor T> std::array<T, 2> normalize_last(const T& x, int count, double eps) {
  const Axes axes = last_axes(count);
  const T centred = x - mean(x, axes, true);
  const T inverse = 1.0 / sqrt(mean(square(centred), axes, true) + eps);
  return {centred * inverse, inverse};
}

/// What operators of layer normalisation ask of x and the weight.
constexpr void require_layer_norm(std::string_view name, const Shape& x, const Shape& weight) {
  require(weight.rank() >= 1 && weight.rank() <= x.rank() && last_extents(x, weight.rank()) == weight, name,
          "the weight must be of the shape of x's last dimensions", x, weight);
}

}  // namespace detail

namespace op {

/// Σ g and Σ g x̂ over all but the last `axes` dimensions of x, flattened: [2, n], for g of the shape of x.
struct LayerNormSums {
  static constexpr std::string_view name = "layer_norm_sums";
  double eps = 1e-5;
  int axes = 1;

  constexpr Shape shape(const Shape& g, const Shape& x) const {
    require(g == x && axes >= 1 && axes <= x.rank(), name, "the gradient is not of the result's shape", g, x);
    return {2, detail::last_extents(x, axes).size()};
  }
  constexpr std::int64_t flops(const Shape&, const Shape& x) const { return 8 * x.size(); }
  template <AnyTensor T> T decompose(const T& g, const T& x) const {
    const Shape row{1, shape(g.shape(), x.shape())[1]};
    const auto sum_rows = [&](const T& terms) {
      return reshape(sum_to(terms, detail::last_extents(x.shape(), axes)), row);
    };
    return concat(0, sum_rows(g), sum_rows(g * detail::normalize_last(x, axes, eps)[0]));
  }
};

/// The gradient of `LayerNorm` by x: with h = g weight and means over the dimensions of the weight
///
///     (h - mean(h) - x̂ mean(h x̂)) / √(variance + eps)
struct LayerNormGradient {
  static constexpr std::string_view name = "layer_norm_gradient";
  double eps = 1e-5;

  constexpr Shape shape(const Shape& g, const Shape& x, const Shape& weight) const {
    detail::require_layer_norm(name, x, weight);
    require(g == x, name, "the gradient is not of the result's shape", g, x);
    return x;
  }
  constexpr std::int64_t flops(const Shape&, const Shape& x, const Shape&) const { return 14 * x.size(); }
  template <AnyTensor T> T decompose(const T& g, const T& x, const T& weight) const {
    const int count = weight.shape().rank();
    const Axes axes = detail::last_axes(count);
    const auto [normal, inverse] = detail::normalize_last(x, count, eps);
    const T h = g * weight;
    return (h - mean(h, axes, true) - normal * mean(h * normal, axes, true)) * inverse;
  }
};

/// weight x̂ + bias, with x̂ = (x - mean) / √(variance + eps) over the last dimensions of x, those of weight
/// and bias.
struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  double eps = 1e-5;  ///< added to the variance

  constexpr Shape shape(const Shape& x, const Shape& weight, const Shape& bias) const {
    detail::require_layer_norm(name, x, weight);
    require(bias == weight, name, "the bias is not of the weight's shape", bias, weight);
    return x;
  }
  constexpr std::int64_t flops(const Shape& x, const Shape&, const Shape&) const { return 8 * x.size(); }
  template <AnyTensor T>
  auto pullback(Needs<3> needs, const T&, const T& x, const T& weight, const T&) const {
    return [needs, eps = eps, shape = weight.shape(), x, weight = needs[0] ? weight : T{}](const T& g) {
      std::array<T, 3> gradients;
      if (needs[0]) gradients[0] = eval(LayerNormGradient{eps}, g, x, weight);
      if (needs[1] || needs[2]) {
        const T sums = eval(LayerNormSums{eps, shape.rank()}, g, x);
        if (needs[1]) gradients[1] = reshape(slice(sums, 0, 1, 2), shape);
        if (needs[2]) gradients[2] = reshape(slice(sums, 0, 0, 1), shape);
      }
      return gradients;
    };
  }
  template <AnyTensor T> T decompose(const T& x, const T& weight, const T& bias) const {
    return detail::normalize_last(x, weight.shape().rank(), eps)[0] * weight + bias;
  }
};

}  // namespace op

/// weight (x - mean) / √(variance + eps) + bias, with mean and biased variance over the last dimensions of x,
/// whose extents are the shape of weight and bias, as PyTorch's `layer_norm`. Throws `ShapeError` if they are
/// not.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto layer_norm(const X& x, const W& weight, const B& bias, double eps = 1e-5) {
  return eval(op::LayerNorm{eps}, x, weight, bias);
}

}  // namespace taut
