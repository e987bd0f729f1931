#pragma once
// Softmax and its logarithm along one axis, computed without overflow.

#include <string_view>

#include "reduce.hpp"
#include "unary.hpp"

namespace taut {

namespace op {

/// yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ) along an axis.
struct Softmax {
  static constexpr std::string_view name = "softmax";
  int axis = -1;

  constexpr Shape shape(const Shape& x) const { return normalize_axis(name, axis, x), x; }
  constexpr std::int64_t flops(const Shape& x) const { return 5 * x.size(); }

  // dxᵢ = yᵢ (gᵢ - Σⱼ gⱼ yⱼ)
  template <AnyTensor T> auto pullback(Needs<1>, const T& y, const T&) const {
    return [axis = axis, y](const T& g) { return y * (g - sum(g * y, {axis}, true)); };
  }
  template <AnyTensor T> T decompose(const T& x) const {
    const T y = exp(x - max(x, {axis}, true));
    return y / sum(y, {axis}, true);
  }
};

/// yᵢ = xᵢ - ln Σⱼ exp(xⱼ) along an axis.
struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax";
  int axis = -1;

  constexpr Shape shape(const Shape& x) const { return normalize_axis(name, axis, x), x; }
  constexpr std::int64_t flops(const Shape& x) const { return 5 * x.size(); }

  // dxᵢ = gᵢ - exp(yᵢ) Σⱼ gⱼ
  template <AnyTensor T> auto pullback(Needs<1>, const T& y, const T&) const {
    return [axis = axis, y](const T& g) { return g - exp(y) * sum(g, {axis}, true); };
  }
  template <AnyTensor T> T decompose(const T& x) const {
    const T shifted = x - max(x, {axis}, true);
    return shifted - log(sum(exp(shifted), {axis}, true));
  }
};

}  // namespace op

/// exp(xᵢ) / Σⱼ exp(xⱼ) along `axis`.
template <AnyTensor X> constexpr auto softmax(const X& x, int axis = -1) {
  return eval(op::Softmax{axis}, x);
}

/// xᵢ - ln Σⱼ exp(xⱼ) along `axis`.
template <AnyTensor X> constexpr auto log_softmax(const X& x, int axis = -1) {
  return eval(op::LogSoftmax{axis}, x);
}

}  // namespace taut
