#pragma once
// Operators on the emulated device against the same operators on the CPU: at the lengths where warps, blocks
// and vectors end, with NaN and infinities, in float and in bfloat16.

#include <gtest/gtest.h>
#include <taut/cpu/cpu.hpp>
#include <taut/cuda/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace taut::test {

/// Lengths at and around those of warps, blocks and vectors.
inline constexpr std::int64_t lengths[] = {0, 1, 3, 4, 31, 32, 33, 255, 1023, 1024, 1025};

/// What no reduction may lose.
inline constexpr float specials[] = {std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::infinity(),
                                     -std::numeric_limits<float>::infinity()};

/// Numbers that bfloat16 has, too, in [-3, 3], the same for every seed.
inline std::vector<float> numbers(std::int64_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = bfloat16(static_cast<float>(random() % 6001) / 1000 - 3);
  return values;
}

inline CpuArray array(const Shape& shape, unsigned seed = 1) {
  return CpuArray::from_host(numbers(shape.size(), seed), shape);
}

/// `array` with one of the values replaced.
inline CpuArray array_with(const Shape& shape, std::int64_t at, float special) {
  auto values = numbers(shape.size());
  values[static_cast<std::size_t>(at)] = special;
  return CpuArray::from_host(values, shape);
}

/// The same tensor on the device, with elements of type E; index tensors stay what they are.
template <class E> BasicCudaTensor<E> on_device(const CpuArray& x) {
  std::vector<E> values;
  for (const float value : x.to_host()) values.push_back(E(value));
  return BasicCudaTensor<E>::from_host(values, x.shape());
}
template <class E> CudaTensor::Index on_device(const CpuArray::Index& x) {
  return CudaTensor::Index::from_host(x.to_host(), x.shape());
}

/// Fails unless the numbers agree to `tolerance`; NaN agrees with NaN, an infinity with itself.
template <class E>
void expect_close(const std::vector<E>& got, const std::vector<float>& expected, float tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float value = got[i], wanted = expected[i];
    const bool same = value == wanted || (std::isnan(value) && std::isnan(wanted));
    ASSERT_TRUE(same || std::abs(value - wanted) <= tolerance)
        << what << ": element " << i << " is " << value << " instead of " << wanted;
  }
}

/// The largest of the finite sizes.
inline float largest_size(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Runs f on the CPU and on the device, which must agree to `ulps` of the largest result, in float and, after
/// all is rounded to it, in bfloat16.
template <class F, class... Arrays>
void compare(const std::string& what, float ulps, const F& f, const Arrays&... xs) {
  const auto expected = f(xs...);
  const auto values = expected.to_host();
  const float unit = ulps * largest_size(values);
  const auto single = f(on_device<float>(xs)...);
  const auto half = f(on_device<bfloat16>(xs)...);
  ASSERT_EQ(single.shape(), expected.shape()) << what;
  ASSERT_EQ(half.shape(), expected.shape()) << what;
  expect_close(single.to_host(), values, unit * std::numeric_limits<float>::epsilon(), what);
  expect_close(half.to_host(), values, std::max(ulps / 8, 1.0f) * unit / ulps * 0x1p-8f,
               what + " in bfloat16");
}

}  // namespace taut::test
