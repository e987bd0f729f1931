#pragma once
// Random images for the benchmarks of networks' operators.

#include <cmath>

#include <taut/taut.hpp>

namespace bench {

/// Normally distributed images [n, c, h, w] in the layout in which convolutions leave their results.
inline taut::CpuArray images_of_conv2d(const taut::Shape& shape, taut::Rng& rng) {
  using taut::CpuArray;
  const auto c = shape[1];
  const auto kernels = CpuArray::normal({c, c, 1, 1}, 0, 1 / std::sqrt(static_cast<float>(c)), rng);
  return conv2d(CpuArray::normal(shape, 0, 1, rng), kernels);
}

}  // namespace bench
