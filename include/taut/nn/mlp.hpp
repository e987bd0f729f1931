#pragma once

#include <cstdint>
#include <vector>

#include "../core/mode.hpp"
#include "linear.hpp"

namespace taut::nn {

/// A multi-layer perceptron: linear layers with ReLU between them.
template <AnyTensor T> struct Mlp {
  std::vector<Linear<T>> layers;

  /// Layers of the given widths, from the input's to the output's: `make({784, 128, 64, 10}, rng)`.
  static constexpr Mlp make(const std::vector<std::int64_t>& widths, Rng& rng) {
    check(widths);
    Mlp mlp;
    for (std::size_t i = 1; i < widths.size(); ++i)
      mlp.layers.push_back(Linear<T>::make(widths[i - 1], widths[i], rng));
    return mlp;
  }

  /// The same where only shapes count.
  static constexpr Mlp make(
      const std::vector<std::int64_t>& widths) requires std::constructible_from<T, const Shape&> {
    check(widths);
    Mlp mlp;
    for (std::size_t i = 1; i < widths.size(); ++i)
      mlp.layers.push_back(Linear<T>::make(widths[i - 1], widths[i]));
    return mlp;
  }

  static constexpr void check(const std::vector<std::int64_t>& widths) {
    if (widths.size() < 2)
      throw ShapeError("Mlp: expected two widths at least, the input's and the output's");
  }

  /// Logits of inputs [n, widths.front()]; training and evaluation are the same.
  constexpr T operator()(const T& x, Mode = Mode::eval) const {
    T y = x;
    for (std::size_t i = 0; i < layers.size(); ++i)
      y = i + 1 < layers.size() ? layers[i].relu(y) : layers[i](y);
    return y;
  }
};

}  // namespace taut::nn
