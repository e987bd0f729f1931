#pragma once
// Division by a number that many threads divide by, without the dozens of instructions that it takes
// otherwise. Source: Granlund and Montgomery, "Division by invariant integers using multiplication", 1994.

#include "launch.cuh"

namespace taut::cuda {

/// Divides numbers below 2³¹ by a divisor from 1 to 2³¹ by one multiplication.
struct Divider {
  std::uint32_t divisor = 1, multiplier = 1;
  int shift = 0;

  Divider() = default;
  explicit Divider(std::uint32_t d) : divisor(d) {
    while (std::uint64_t{1} << shift < d) ++shift;
    multiplier =
        static_cast<std::uint32_t>((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - d) / d + 1);
  }

  __host__ __device__ std::uint32_t divide(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 32);
    return (high + n) >> shift;
  }
};

}  // namespace taut::cuda
