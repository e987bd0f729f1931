// Positions of the largest elements on the device: in rows that are read by vectors and in others, in results
// that several blocks share; the first of equal ones, wherever they are.

#include <taut/cuda/reduce.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

/// The positions along an axis, which must be the CPU's, in float and in bfloat16.
void compare_argmax(const CpuArray& x, int axis, const std::string& what) {
  const auto expected = argmax(x, axis).to_host();
  EXPECT_EQ(argmax(on_device<float>(x), axis).to_host(), expected) << what;
  EXPECT_EQ(argmax(on_device<bfloat16>(x), axis).to_host(), expected) << what << " in bfloat16";
}

/// Rows of n equal numbers, but for larger ones at both of the positions in the last row.
CpuArray with_peaks(std::int64_t rows, std::int64_t n, std::int64_t a, std::int64_t b, float peak) {
  std::vector<float> values(static_cast<std::size_t>(rows * n), -1.0f);
  for (const auto at : {a, b}) values[static_cast<std::size_t>((rows - 1) * n + at)] = peak;
  return CpuArray::from_host(values, {rows, n});
}

TEST(CudaArgmax, OfRowsThatDivideIntoVectors) {
  for (const std::int64_t n : {8, 12, 16, 24, 40, 256, 1000, 1032, 5000}) {
    const std::string what = "rows of " + std::to_string(n);
    compare_argmax(array({5, n}), -1, what);
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 3, n - 1})
      for (const float peak :
           {2.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
        compare_argmax(with_peaks(3, n, at, n - 2, peak), -1, what + ", " + std::to_string(peak));
  }
}

TEST(CudaArgmax, OfBothZerosIsTheFirst) {
  for (const float first : {0.0f, -0.0f}) {
    std::vector<float> values(16, -first);
    values[0] = first;
    compare_argmax(CpuArray::from_host(values, {1, 16}), -1, "zeros");
  }
}

TEST(CudaArgmax, OfImagesWithTheChannelsLast) {
  const auto x = array({2, 16, 3, 5});
  const auto last = on_device<float>(x).in_layout(cuda::Layout::channels_last);
  for (const int axis : {0, 1, 2, 3}) EXPECT_EQ(argmax(last, axis).to_host(), argmax(x, axis).to_host());
}

TEST(CudaArgmax, OfResultsThatBlocksShare) {
  // Rows by vectors, rows that are not aligned, and columns; parts end at other places than the results.
  for (const std::int64_t n : {40008, 40001}) {
    const std::string what = std::to_string(n) + " elements";
    for (const std::int64_t at : {std::int64_t{0}, n / 3, n / 2, n - 2})
      for (const float peak : {2.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
        const auto x = with_peaks(2, n, at, n - 1, peak);
        compare_argmax(x, 1, what + ", " + std::to_string(peak));
        compare_argmax(transpose(x), 0, what + " in columns, " + std::to_string(peak));
      }
  }
}

}  // namespace
}  // namespace taut::test
