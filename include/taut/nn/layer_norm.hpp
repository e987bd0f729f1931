#pragma once

#include "../op/layer_norm.hpp"
#include "init.hpp"

namespace taut::nn {

/// Normalises x over its last dimensions, `normalized_shape`, to mean 0 and variance 1, times `weight` plus
/// `bias`, which are of that shape. Names and `eps` are PyTorch's.
template <AnyTensor T> struct LayerNorm {
  T weight, bias;
  double eps = 1e-5;

  /// Weights 1 and biases 0, as PyTorch's.
  static constexpr LayerNorm make(const Shape& normalized_shape, double eps = 1e-5) {
    return {parameter(T::ones(normalized_shape)), parameter(T::zeros(normalized_shape)), eps};
  }

  constexpr T operator()(const T& x) const { return layer_norm(x, weight, bias, eps); }
};

}  // namespace taut::nn
