#pragma once

#include "../core/mode.hpp"
#include "../op/max_pool2d.hpp"
#include "../op/unary.hpp"
#include "conv2d.hpp"
#include "linear.hpp"

namespace taut::nn {

/// LeNet-5 (LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998) as it is written
/// today, with ReLU and max pooling: images [n, c, h, w] to logits [n, classes].
template <AnyTensor T> struct LeNet {
  Conv2d<T> conv1, conv2;
  Linear<T> fc1, fc2, fc3;

  /// For images of `channels` x `side` x `side`, of 16 pixels at least.
  static constexpr LeNet make(std::int64_t channels, std::int64_t side, std::int64_t classes, Rng& rng) {
    const auto left = ((side - 4) / 2 - 4) / 2;
    if (side < 16) throw ShapeError("LeNet: expected images of 16 x 16 pixels at least");
    return {Conv2d<T>::make(channels, 6, 5, rng), Conv2d<T>::make(6, 16, 5, rng),
            Linear<T>::make(16 * left * left, 120, rng), Linear<T>::make(120, 84, rng),
            Linear<T>::make(84, classes, rng)};
  }

  constexpr T operator()(const T& images, Mode = Mode::eval) const {
    const T x = max_pool2d(relu(conv2(max_pool2d(relu(conv1(images))))));
    return fc3(fc2.relu(fc1.relu(flatten(x))));
  }
};

}  // namespace taut::nn
