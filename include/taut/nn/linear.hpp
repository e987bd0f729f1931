#pragma once

#include <optional>

#include "../op/matmul.hpp"
#include "init.hpp"

namespace taut::nn {

/// Options of `Linear::make`.
struct LinearOptions {
  bool bias = true;
};

/// y = x Wᵀ + b: [.., in] to [.., out]. `weight` is [out, in] and `bias` [out], as in PyTorch.
template <AnyTensor T> struct Linear {
  T weight;
  std::optional<T> bias;

  /// Weight and bias uniform on ±1/√in, as PyTorch's.
  static constexpr Linear make(std::int64_t in, std::int64_t out, Rng& rng, LinearOptions options = {}) {
    auto weight = fan_in_uniform<T>({out, in}, in, rng);
    return {std::move(weight),
            options.bias ? std::optional(fan_in_uniform<T>({out}, in, rng)) : std::nullopt};
  }

  /// The same where only shapes count.
  static constexpr Linear make(std::int64_t in, std::int64_t out,
                               LinearOptions options = {}) requires std::constructible_from<T, const Shape&> {
    return {T(Shape{out, in}), options.bias ? std::optional(T(Shape{out})) : std::nullopt};
  }

  constexpr T operator()(const T& x) const {
    return bias ? linear(x, weight, *bias) : matmul(x, weight, {.transpose_b = true});
  }
  /// relu(y), in one pass where there is a bias and the backend can.
  constexpr T relu(const T& x) const { return bias ? linear_relu(x, weight, *bias) : taut::relu((*this)(x)); }
  /// gelu_tanh(y), likewise.
  constexpr T gelu_tanh(const T& x) const {
    return bias ? linear_gelu_tanh(x, weight, *bias) : taut::gelu_tanh((*this)(x));
  }
};

}  // namespace taut::nn
