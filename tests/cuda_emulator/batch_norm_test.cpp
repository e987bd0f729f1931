// Batch normalisation on the device: for numbers of channels that divide into vectors and that do not, and
// for more rows than one group sums.

#include <taut/cuda/cuda.hpp>
#include <taut/interpret/grad.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

/// All operators of the family, by constant statistics and by x's own.
void compare_all(const CpuArray& x) {
  const Shape channels{x.shape()[1]};
  const auto weight = array(channels, 2), bias = array(channels, 3), g = array(x.shape(), 4);
  const auto residual = array(x.shape(), 5);
  std::vector<float> numbers(static_cast<std::size_t>(2 * channels[0]), 0.25f);  // means and variances
  const auto statistics = CpuArray::from_host(numbers, {2, channels[0]}), sums = array({2, channels[0]}, 6);
  const std::string of_x = " of " + to_string(x.shape());
  for (const bool relu : {false, true}) {
    const bool batch = !relu;
    const op::BatchNormOptions options{.eps = 1e-5, .relu = relu, .batch = batch};
    const std::string what = of_x + (relu ? ", relu" : "") + (batch ? ", batch" : "");
    compare(
        "batch_norm" + what, 4,
        [&](const auto& t, const auto& w, const auto& b, const auto& s) {
          return eval(op::BatchNorm{options}, t, w, b, widen(s));
        },
        x, weight, bias, statistics);
    compare(
        "batch_norm_add_relu" + what, 4,
        [&](const auto& t, const auto& w, const auto& b, const auto& s, const auto& r) {
          return eval(op::BatchNormAddRelu{options}, t, w, b, widen(s), r);
        },
        x, weight, bias, statistics, residual);
    compare(
        "batch_norm_sums" + what, 16,
        [&](const auto& dy, const auto& t, const auto& w, const auto& b, const auto& s) {
          return eval(op::BatchNormSums{options}, dy, t, w, b, widen(s));
        },
        g, x, weight, bias, statistics);
    compare(
        "batch_norm_gradient" + what, 8,
        [&](const auto& dy, const auto& t, const auto& w, const auto& b, const auto& s, const auto& of) {
          return eval(op::BatchNormGradient{options}, dy, t, w, b, widen(s), widen(of));
        },
        g, x, weight, bias, statistics, sums);
  }
  if (x.shape()[0] > 0)
    compare(
        "batch_statistics" + of_x, 4, [](const auto& t) { return batch_statistics(t); }, x);
}

TEST(CudaBatchNorm, EqualsTheCpus) {
  for (const auto n : lengths) {
    compare_all(array({n, 3}));
    compare_all(array({2, n, 2, 3}));
    compare_all(array({n, 8, 3, 1}));
  }
  compare_all(array({4, 64, 9, 7}));
  compare_all(array({2, 5, 7}));
  compare_all(array({2, 12, 2, 3, 4}));
  compare_all(array({70, 16, 17, 16}));
}

TEST(CudaBatchNorm, GivesTheSameForEitherLayout) {
  const auto x = on_device<float>(array({3, 8, 4, 5}));
  const auto last = x.in_layout(cuda::Layout::channels_last);
  EXPECT_EQ(batch_statistics(x).to_host(), batch_statistics(last).to_host());
  const auto one = CudaTensor::ones({8}), zero = CudaTensor::zeros({8});
  const auto y = batch_norm(x, one, zero), z = batch_norm(last, one, zero);
  EXPECT_EQ(y.layout(), cuda::Layout::channels_last);
  EXPECT_EQ(y.to_host(), z.to_host());
}

TEST(CudaBatchNorm, StatisticsOfEqualElementsAreExact) {
  for (const std::int64_t n : {1, 3, 63, 1000}) {
    const auto statistics = batch_statistics(CudaTensor::full({n, 3, 5, 1}, 0.1f)).to_host();
    EXPECT_EQ(statistics, (std::vector<float>{0.1f, 0.1f, 0.1f, 0, 0, 0})) << n;
  }
}

TEST(CudaBatchNorm, StatisticsOfBfloat16AreFloats) {
  for (const Shape& shape : {Shape{1000, 3}, Shape{4, 8, 9, 7}}) {
    const auto x = array(shape);
    const auto expected = batch_statistics(x).to_host();
    const CudaTensor statistics = batch_statistics(on_device<bfloat16>(x));
    expect_close(statistics.to_host(), expected, 1e-6f * largest_size(expected), "statistics");
  }
}

TEST(CudaBatchNorm, SumsOfBfloat16AreFloats) {
  // Gradients that differ in their last bit, of which the normalisation takes away the mean: to 16 bits, that
  // would be as far off as what is left is large.
  const Shape shape{4, 8, 9, 7}, channels{8};
  auto values = numbers(shape.size());
  for (float& value : values) value = value < 0 ? 1.0f : 1.0078125f;
  const auto gradient_by_x = []<class T>(const T& g, const T& x, const T& weight, const T& bias) {
    const auto leaf = Grad<T>(x).track();
    Tape<T> tape;
    tape.backward(batch_norm(leaf, weight, bias), g);
    return leaf.grad().to_host();
  };
  const auto g = CpuArray::from_host(values, shape), x = array(shape, 2), weight = array(channels, 3),
             bias = array(channels, 4);
  const auto expected = gradient_by_x(g, x, weight, bias);
  const auto half = gradient_by_x(on_device<bfloat16>(g), on_device<bfloat16>(x), on_device<bfloat16>(weight),
                                  on_device<bfloat16>(bias));
  expect_close(half, expected, 0x1p-8f * largest_size(expected), "gradient");
}

TEST(CudaBatchNorm, VarianceDoesNotCancel) {
  auto values = numbers(3000);
  for (float& value : values) value = 4096 + bfloat16(value / 64);
  values[0] = 0;  // far from all others: no sum may be about it
  const auto x = CpuArray::from_host(values, {1000, 3});
  expect_close(batch_statistics(on_device<float>(x)).to_host(), batch_statistics(x).to_host(), 0.02f,
               "variance");
}

TEST(CudaBatchNorm, NanAndInfinitiesReachWhatDependsOnThem) {
  for (const float special : specials) {
    const auto x = on_device<float>(array_with({130, 3}, 4, special));  // in the second channel
    const auto statistics = batch_statistics(x).to_host();
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isfinite(statistics[i]), i % 3 != 1) << i;
    const auto one = CudaTensor::ones({3}), zero = CudaTensor::zeros({3});
    for (const bool relu : {false, true}) {
      const auto y = batch_norm(x, one, zero, {.relu = relu}).to_host();
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i % 3 == 1) << i;
    }
  }
}

}  // namespace
}  // namespace taut::test
