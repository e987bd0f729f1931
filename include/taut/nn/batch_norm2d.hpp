#pragma once

#include <cmath>
#include <optional>

#include "../core/mode.hpp"
#include "../op/batch_norm.hpp"
#include "../op/convert.hpp"
#include "conv2d.hpp"
#include "model.hpp"

namespace taut::nn {

/// Normalises each channel of images [n, c, h, w] to mean 0 and variance 1, times `weight` [c] plus `bias`
/// [c]. In training by the batch's own statistics, which also move the running ones; in evaluation by those.
/// Names, `momentum` and `eps` are PyTorch's. Statistics are `Widened<T>`: float, where T is narrower.
template <AnyTensor T> struct BatchNorm2d {
  T weight, bias;
  Buffer<Widened<T>> running_mean, running_var;
  double momentum = 0.1, eps = 1e-5;

  static constexpr BatchNorm2d make(std::int64_t channels) {
    const Shape c{channels};
    return {parameter(T::ones(c)), parameter(T::zeros(c)), {Widened<T>::zeros(c)}, {Widened<T>::ones(c)}};
  }

  constexpr T operator()(const T& x, Mode mode) const {
    return eval(op::BatchNorm{options(mode, false)}, x, weight, bias, statistics(x, mode));
  }
  /// The same, then ReLU, in one pass.
  constexpr T relu(const T& x, Mode mode) const {
    return eval(op::BatchNorm{options(mode, true)}, x, weight, bias, statistics(x, mode));
  }
  /// The same, then + residual, then ReLU, in one pass.
  constexpr T add_relu(const T& x, const T& residual, Mode mode) const {
    return eval(op::BatchNormAddRelu{options(mode, false)}, x, weight, bias, statistics(x, mode), residual);
  }

 private:
  constexpr op::BatchNormOptions options(Mode mode, bool with_relu) const {
    return {.eps = eps, .relu = with_relu, .batch = mode == Mode::train};
  }

  /// The mean and variance [2, c] to normalise by.
  constexpr Widened<T> statistics(const T& x, Mode mode) const {
    const Shape row{1, weight.shape()[0]};
    if (mode == Mode::eval)
      return concat(0, reshape(running_mean.value, row), reshape(running_var.value, row));
    require(taut::detail::channel_size(x.shape()) > 1,
            "BatchNorm2d: training needs more than one value a channel", x.shape());
    const Widened<T> own = batch_statistics(x);
    if constexpr (!detail::OnlyShape<T>) {
      // As PyTorch, the running variance is of the unbiased kind.
      const auto n = static_cast<double>(taut::detail::channel_size(x.shape()));
      const double unbiased = momentum * n / (n - 1);
      move_on(running_mean.value, 1 - momentum, slice(own, 0, 0, 1), momentum);
      move_on(running_var.value, 1 - momentum, slice(own, 0, 1, 2), unbiased);
    }
    return own;
  }

  /// running ← keep running + take own, in place where nobody shares it.
  static constexpr void move_on(Widened<T>& running, double keep, const Widened<T>& own, double take) {
    Widened<T> share = reshape(own, running.shape()) * take;
    running = std::move(running) * keep + std::move(share);
  }
};

/// Puts a normalisation by its running statistics into the convolution before it, which then computes both:
/// weight · γ / √(variance + eps) and (bias - mean) · γ / √(variance + eps) + β. For inference.
template <AnyTensor T> void fold(Conv2d<T>& conv, std::optional<BatchNorm2d<T>>& norm) {
  if (!norm) return;
  using W = Widened<T>;
  const W factor = widen(norm->weight) / sqrt(norm->running_var.value + norm->eps);
  const W shift = conv.bias ? widen(*conv.bias) - norm->running_mean.value : -norm->running_mean.value;
  conv.weight = convert<T>(widen(conv.weight) * reshape(factor, {factor.shape()[0], 1, 1, 1}));
  conv.bias = convert<T>(shift * factor + widen(norm->bias));
  norm.reset();
}

}  // namespace taut::nn
