#pragma once
// Random operands that several benchmarks need.

#include <cmath>
#include <vector>

#include <taut/taut.hpp>

namespace bench {

/// Normally distributed images [n, c, h, w] in the layout in which convolutions leave their results.
inline taut::CpuArray images_of_conv2d(const taut::Shape& shape, taut::Rng& rng) {
  using taut::CpuArray;
  const auto c = shape[1];
  const auto kernels = CpuArray::normal({c, c, 1, 1}, 0, 1 / std::sqrt(static_cast<float>(c)), rng);
  return conv2d(CpuArray::normal(shape, 0, 1, rng), kernels);
}

/// Random labels [n] of 0 … classes - 1.
inline taut::CpuArray::Index random_labels(std::int64_t n, std::int64_t classes, taut::Rng& rng) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(n));
  for (auto& label : labels)
    label = static_cast<std::int64_t>(rng.integer(static_cast<std::uint64_t>(classes)));
  return taut::CpuArray::Index::from_host(labels, {n});
}

}  // namespace bench
