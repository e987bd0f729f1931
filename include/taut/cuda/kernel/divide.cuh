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

/// Divides any numbers that are not negative by a positive one: those below 2³¹ as `Divider` does.
struct LongDivider {
  static constexpr std::int64_t limit = std::int64_t{1} << 31;
  std::int64_t divisor = 1;
  Divider small;

  LongDivider() = default;
  explicit LongDivider(std::int64_t d)
      : divisor(d), small(static_cast<std::uint32_t>(d < limit ? d : limit)) {}

  __host__ __device__ std::int64_t divide(std::int64_t n) const {
    return n < limit ? small.divide(static_cast<std::uint32_t>(n)) : n / divisor;
  }
};

}  // namespace taut::cuda
