// Layer normalisation on the device: for rows that teams of lanes take, and blocks, and for numbers of
// columns that divide into vectors and that do not.

#include <taut/cuda/layer_norm.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

/// All operators of the family on x, normalised over the last dimension.
void compare_all(const CpuArray& x) {
  const Shape row{x.shape()[-1]};
  const auto weight = array(row, 2), bias = array(row, 3), g = array(x.shape(), 4);
  const std::string what = " of " + to_string(x.shape());
  compare(
      "layer_norm" + what, 8, [](const auto&... xs) { return layer_norm(xs...); }, x, weight, bias);
  compare(
      "layer_norm_gradient" + what, 16,
      [](const auto&... xs) { return eval(op::LayerNormGradient{}, xs...); }, g, x, weight);
  compare(
      "layer_norm_sums" + what, 16, [](const auto&... xs) { return eval(op::LayerNormSums{}, xs...); }, g, x);
}

TEST(CudaLayerNorm, EqualsTheCpus) {
  for (const auto n : lengths) {
    compare_all(array({n, 10}));
    compare_all(array({5, n}));
    compare_all(array({n, 2, 16}));
  }
  compare_all(array({2, 5000}));
  compare_all(array({300, 72}));
}

TEST(CudaLayerNorm, SumsMillionsOfColumns) {
  // They do not divide into vectors, and take more blocks than kernels have that stride over the grid.
  const Shape shape{2, (1 << 21) + 39};
  const auto g = array(shape, 4), x = array(shape);
  const auto sums = eval(op::LayerNormSums{}, on_device<float>(g), on_device<float>(x));
  expect_close(sums.to_host(), eval(op::LayerNormSums{}, g, x).to_host(), 1e-3f, "layer_norm_sums");
}

TEST(CudaLayerNorm, TakesImagesWithTheChannelsLast) {
  const auto x = on_device<float>(array({2, 8, 3, 5}));
  const auto weight = on_device<float>(array({5}, 2)), bias = on_device<float>(array({5}, 3));
  const auto last = x.in_layout(cuda::Layout::channels_last);
  EXPECT_EQ(layer_norm(x, weight, bias).to_host(), layer_norm(last, weight, bias).to_host());
}

TEST(CudaLayerNorm, OfEqualElementsIsTheBias) {
  for (const std::int64_t n : {1, 3, 63, 1100}) {
    const auto y = layer_norm(CudaTensor::full({2, n}, 100.1f), CudaTensor::ones({n}), CudaTensor::ones({n}));
    EXPECT_EQ(y.to_host(), std::vector<float>(static_cast<std::size_t>(2 * n), 1.0f)) << n;
  }
}

TEST(CudaLayerNorm, TheVarianceDoesNotCancel) {
  auto values = numbers(200);
  for (float& value : values) value = 4096 + bfloat16(value / 64);
  const auto x = CpuArray::from_host(values, {2, 100});
  const auto one = CpuArray::ones({100}), zero = CpuArray::zeros({100});
  expect_close(layer_norm(on_device<float>(x), on_device<float>(one), on_device<float>(zero)).to_host(),
               layer_norm(x, one, zero).to_host(), 0.05f, "layer_norm");
}

TEST(CudaLayerNorm, NanAndInfinitiesReachTheirRow) {
  for (const float special : specials)
    for (const std::int64_t n : {2, 5, 33, 1025})
      for (const std::int64_t at : {std::int64_t{0}, n - 1}) {
        const auto x = on_device<float>(array_with({3, n}, n + at, special));
        const auto y = layer_norm(x, CudaTensor::ones({n}), CudaTensor::ones({n})).to_host();
        for (std::size_t i = 0; i < y.size(); ++i)
          EXPECT_EQ(std::isnan(y[i]), static_cast<std::int64_t>(i) / n == 1)
              << special << ' ' << n << ' ' << i;
      }
}

}  // namespace
}  // namespace taut::test
