#pragma once
// How parameters start.

#include <cmath>
#include <concepts>

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

namespace detail {
/// Types of which only the shape is known take no values.
template <class T>
concept OnlyShape = AnyTensor<T> && std::constructible_from<T, const Shape&>;
}  // namespace detail

/// A parameter uniform on [-1/√fan_in, 1/√fan_in): PyTorch's default for linear and convolution layers, which
/// is He's initialisation with a = √5 (He et al., "Delving Deep into Rectifiers", 2015).
template <AnyTensor T>
constexpr T fan_in_uniform(const Shape& shape, std::int64_t fan_in, [[maybe_unused]] Rng& rng) {
  if constexpr (detail::OnlyShape<T>) {
    return T(shape);
  } else {
    using E = typename T::Element;
    const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
    return parameter(T::uniform(shape, static_cast<E>(-bound), static_cast<E>(bound), rng));
  }
}

/// A parameter from the normal distribution with mean 0.
template <AnyTensor T> constexpr T normal(const Shape& shape, double deviation, [[maybe_unused]] Rng& rng) {
  if constexpr (detail::OnlyShape<T>) {
    return T(shape);
  } else {
    using E = typename T::Element;
    return parameter(T::normal(shape, E(0), static_cast<E>(deviation), rng));
  }
}

/// A parameter from the normal distribution with deviation √(2 / fan_out): He's initialisation for ReLU by
/// the number of outputs that an input reaches, PyTorch's `kaiming_normal_` with `mode="fan_out"`.
template <AnyTensor T> constexpr T fan_out_normal(const Shape& shape, std::int64_t fan_out, Rng& rng) {
  return normal<T>(shape, fan_out > 0 ? std::sqrt(2 / static_cast<double>(fan_out)) : 0, rng);
}

}  // namespace taut::nn
