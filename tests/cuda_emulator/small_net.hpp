#pragma once
// A network that has one of each kind of kernel a residual network trains with.

#include <taut/nn/batch_norm2d.hpp>
#include <taut/nn/conv2d.hpp>
#include <taut/nn/linear.hpp>

#include <cstdint>
#include <utility>

namespace taut::test {

/// A convolution, normalised; a residual block of one; and a classifier of what is left of each channel.
template <AnyTensor T> struct SmallNet {
  nn::Conv2d<T> conv1, conv2;
  nn::BatchNorm2d<T> bn1, bn2;
  nn::Linear<T> fc;

  static SmallNet make(std::int64_t inputs, std::int64_t width, std::int64_t classes, int stride, Rng& rng) {
    auto first = nn::Conv2d<T>::make(inputs, width, 3, rng, {.stride = stride, .padding = 1, .bias = false});
    auto second = nn::Conv2d<T>::make(width, width, 3, rng, {.padding = 1, .bias = false});
    return {std::move(first), std::move(second), nn::BatchNorm2d<T>::make(width),
            nn::BatchNorm2d<T>::make(width), nn::Linear<T>::make(width, classes, rng)};
  }
  T operator()(const T& x, Mode mode) const {
    const T y = bn1.relu(conv1(x), mode);
    return fc(global_avg_pool2d(bn2.add_relu(conv2(y), y, mode)));
  }
};

}  // namespace taut::test
