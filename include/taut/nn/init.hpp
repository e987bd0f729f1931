#pragma once
// How parameters start.

#include <cmath>

#include "../core/random.hpp"
#include "../interpret/grad.hpp"

namespace taut::nn {

/// A fresh tensor as a parameter: a `Grad` becomes a leaf, other interpretations stay as they are.
template <AnyTensor T> constexpr T parameter(T value) {
  if constexpr (is_grad<T>)
    return std::move(value).track();
  else
    return value;
}

/// A parameter uniform on [-1/√fan_in, 1/√fan_in): PyTorch's default for linear and convolution layers, which
/// is He's initialisation with a = √5 (He et al., "Delving Deep into Rectifiers", 2015).
template <AnyTensor T> constexpr T fan_in_uniform(const Shape& shape, std::int64_t fan_in, Rng& rng) {
  using E = typename T::Element;
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return parameter(T::uniform(shape, static_cast<E>(-bound), static_cast<E>(bound), rng));
}

}  // namespace taut::nn
