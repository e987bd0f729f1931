// Cross-entropy and selection by label on the device.

#include <taut/cuda/cross_entropy.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

CpuArray::Index labels(std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < rows; ++i) values.push_back((i * 7 + 2) % classes);
  return CpuArray::Index::from_host(values, {rows});
}

/// All operators of the family on logits x.
void compare_all(const CpuArray& x) {
  const std::int64_t rows = x.shape()[0], classes = x.shape()[1];
  const auto y = labels(rows, classes);
  const std::string what = " of " + to_string(x.shape());
  compare(
      "cross_entropy" + what, 4, [](const auto& t, const auto& l) { return cross_entropy(t, l); }, x, y);
  compare(
      "pick of log_softmax" + what, 8, [](const auto& t, const auto& l) { return pick(log_softmax(t), l); },
      x, y);
  compare(
      "pick" + what, 0.001f, [](const auto& t, const auto& l) { return pick(t, l); }, x, y);
  compare(
      "unpick" + what, 0.001f,
      [classes](const auto& t, const auto& l) { return eval(op::Unpick{classes}, t, l); }, array({rows}), y);
  compare(
      "gradient" + what, 8,
      [](const auto& g, const auto& t, const auto& l) { return eval(op::CrossEntropyGradient{}, g, t, l); },
      array({1}), x, y);
}

TEST(CudaCrossEntropy, EqualsTheCpus) {
  for (const auto n : lengths) {
    compare_all(array({n, 10}));
    if (n > 0) compare_all(array({5, n}));
  }
  compare_all(array({2, 5000}));
}

TEST(CudaCrossEntropy, PassesNanAndInfinitiesOnAsTheCpuDoes) {
  for (const float special : specials)
    for (const std::int64_t n : {1, 5, 33, 1025})
      for (const std::int64_t at : {std::int64_t{0}, n + n / 2, 2 * n - 1})
        compare_all(array_with({2, n}, at, special));
}

TEST(CudaCrossEntropy, LabelsThatAreNoClassesMakeNan) {
  const auto x = CudaTensor::ones({2, 3});
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40}) {
    const auto y = CudaTensor::Index::from_host(std::vector<std::int64_t>{1, wrong}, {2});
    EXPECT_TRUE(std::isnan(cross_entropy(x, y).item()));
    const auto picked = pick(x, y).to_host();
    EXPECT_EQ(picked[0], 1);
    EXPECT_TRUE(std::isnan(picked[1]));
    for (const auto& rows : {eval(op::Unpick{3}, CudaTensor::ones({2}), y).to_host(),
                             eval(op::CrossEntropyGradient{}, CudaTensor::ones({}), x, y).to_host()})
      for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(rows[i]), i >= 3) << i;
  }
}

}  // namespace
}  // namespace taut::test
