#pragma once

#include <optional>

#include "../op/conv2d.hpp"
#include "init.hpp"

namespace taut::nn {

/// Options of `Conv2d::make`, as PyTorch's.
struct Conv2dOptions {
  HeightWidth stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

/// y = conv2d(x, weight) + bias: images [n, in, h, w] to [n, out, h', w']. `weight` is [out, in / groups, kh,
/// kw] and `bias` [out], as in PyTorch.
template <AnyTensor T> struct Conv2d {
  T weight;
  std::optional<T> bias;
  op::Conv2d options{};

  /// Weight and bias uniform on ±1/√(in / groups · kh · kw), as PyTorch's.
  static constexpr Conv2d make(std::int64_t in, std::int64_t out, HeightWidth kernel, Rng& rng,
                               Conv2dOptions options = {}) {
    if (options.groups < 1 || in % options.groups != 0 || out % options.groups != 0)
      throw ShapeError(
          "Conv2d: the number of groups must divide the channels, those of the input and of the result");
    if (kernel.h < 1 || kernel.w < 1) throw ShapeError("Conv2d: the kernel must be at least 1 x 1");
    const auto fan_in = in / options.groups * kernel.h * kernel.w;
    auto weight = fan_in_uniform<T>({out, in / options.groups, kernel.h, kernel.w}, fan_in, rng);
    auto bias = options.bias ? std::optional(fan_in_uniform<T>({out}, fan_in, rng)) : std::nullopt;
    return {std::move(weight),
            std::move(bias),
            {options.stride, options.padding, options.dilation, options.groups}};
  }

  constexpr T operator()(const T& x) const {
    return bias ? conv2d(x, weight, *bias, options) : conv2d(x, weight, options);
  }
  /// relu(y), in one pass where there is a bias and the backend can.
  constexpr T relu(const T& x) const {
    return bias ? conv2d_relu(x, weight, *bias, options) : taut::relu((*this)(x));
  }
  /// relu(y + residual), likewise.
  constexpr T add_relu(const T& x, const T& residual) const {
    return bias ? conv2d_add_relu(x, weight, *bias, residual, options)
                : map(op::AddRelu{}, (*this)(x), residual);
  }
};

}  // namespace taut::nn
