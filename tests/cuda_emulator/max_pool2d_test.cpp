// Max pooling on the device: windows that overlap, leave gaps and reach into the padding, in numbers of
// channels that divide into vectors and that do not.

#include <taut/cuda/max_pool2d.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

/// All operators of the family on images x. Their values are few, so that many are equal.
void compare_all(const op::MaxPool2d& pool, const CpuArray& x) {
  const Shape to = pool.shape(x.shape());
  const std::string what = " of " + to_string(x.shape()) + ", kernel " + std::to_string(pool.kernel.h) +
                           " x " + std::to_string(pool.kernel.w);
  compare(
      "max_pool2d" + what, 0.001f, [&](const auto& t) { return eval(pool, t); }, x);
  compare(
      "max_pool2d_pick" + what, 0.001f,
      [&](const auto& v, const auto& t) { return eval(op::MaxPool2dPick{pool}, v, t); }, array(x.shape(), 2),
      x);
  compare(
      "max_pool2d_gradient" + what, 4,
      [&](const auto& g, const auto& t) { return eval(op::MaxPool2dGradient{pool}, g, t); }, array(to, 3), x);
}

const op::MaxPool2d pools[] = {{.kernel = 2},
                               {.kernel = 3, .stride = 2, .padding = 1},
                               {.kernel = 1, .stride = 2},
                               {.kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}},
                               {.kernel = {4, 5}}};

/// Images of the numbers -1, 0 and 1.
CpuArray coarse_images(const Shape& shape) {
  auto values = numbers(shape.size());
  for (float& value : values) value = std::round(value / 3);
  return CpuArray::from_host(values, shape);
}

TEST(CudaMaxPool2d, EqualsTheCpus) {
  for (const auto& pool : pools) {
    for (const auto n : lengths) {
      compare_all(pool, array({n, 1, 4, 5}));
      if (n < 100) compare_all(pool, coarse_images({2, n, 5, 6}));
    }
    compare_all(pool, coarse_images({2, 64, 9, 8}));
  }
  compare_all({.kernel = 32}, array({2, 8, 32, 33}));
  const std::int64_t beyond_32_bits = (std::int64_t{1} << 32) + 1;
  compare_all({.kernel = 2, .stride = beyond_32_bits}, array({1, 4, 5, 6}));
}

TEST(CudaMaxPool2d, RefusesGradientsOfImagesTooLargeToDivide) {
  const cuda::WindowAxis rows{1, 1, 1, 1, 0, 1}, columns{std::int64_t{1} << 31, 1, 1, 1, 0, 1};
  EXPECT_THROW(cuda::launch_max_pool2d_gradient<float>({1, 1, rows, columns}, nullptr, nullptr, nullptr,
                                                       nullptr, cuda::current_stream()),
               Error);
  const cuda::WindowAxis padded{(std::int64_t{1} << 31) - 1, 1, 2, 1, 1, 1};
  EXPECT_THROW(cuda::launch_max_pool2d_gradient<float>({1, 1, rows, padded}, nullptr, nullptr, nullptr,
                                                       nullptr, cuda::current_stream()),
               Error);
}

TEST(CudaMaxPool2d, PassesNanAndInfinitiesOnAsTheCpuDoes) {
  for (const auto& pool : pools)
    for (const float special : specials)
      for (const std::int64_t at : {0, 13, 39, 79}) compare_all(pool, array_with({1, 4, 4, 5}, at, special));
}

TEST(CudaMaxPool2d, GivesTheSameForEitherLayout) {
  const auto x = on_device<float>(array({3, 8, 4, 6}));
  const auto y = max_pool2d(x), z = max_pool2d(x.in_layout(cuda::Layout::channels_last));
  EXPECT_EQ(y.layout(), cuda::Layout::channels_last);
  EXPECT_EQ(y.to_host(), z.to_host());
}

}  // namespace
}  // namespace taut::test
