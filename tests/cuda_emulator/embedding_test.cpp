// Lookup of rows by index on the device, and its gradient.

#include <taut/cuda/embedding.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

/// Indices of which some rows come up often, and some late or never.
CpuArray::Index indices(std::int64_t count, std::int64_t rows) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i % 5 == 0 ? 0 : i * i * 7 % rows);
  return CpuArray::Index::from_host(values, {count});
}

/// `count` lookups in a table, and their gradient.
void compare_both(std::int64_t count, const Shape& table) {
  const auto named = indices(count, table[0]);
  const std::string what = " of " + std::to_string(count) + " rows of " + to_string(table);
  compare(
      "embedding" + what, 0.001f, [](const auto& w, const auto& i) { return embedding(i, w); }, array(table),
      named);
  compare(
      "embedding_gradient" + what, 16,
      [&](const auto& g, const auto& i) { return eval(op::EmbeddingGradient{table[0]}, g, i); },
      array({count, table[1]}), named);
}

TEST(CudaEmbedding, EqualsTheCpus) {
  for (const auto n : lengths) {
    compare_both(n, {10, 3});
    compare_both(7, {3, n});
    if (n > 0) compare_both(40, {n, 8});
  }
  compare_both(300, {6, 1030});
  compare_both(6, {4, 2056});
}

TEST(CudaEmbedding, TakesRowsOfManyMillions) {
  // They are cut into more slices than a grid's second dimension has blocks; no row is named, to save time.
  const auto g = CudaTensor::ones({1, (std::int64_t{1} << 26) + 3});
  EXPECT_NO_THROW(eval(op::EmbeddingGradient{1}, g, CudaTensor::Index::full({1}, -1)));
}

TEST(CudaEmbedding, SumsInTheOrderOfThePositions) {
  // In any other order 1 would be lost in 2³⁰.
  const auto named = CudaTensor::Index::zeros({3});
  const auto g = CudaTensor::from_host(std::vector<float>{0x1p30f, -0x1p30f, 1}, {3, 1});
  EXPECT_EQ(eval(op::EmbeddingGradient{1}, g, named).item(), 1);
}

TEST(CudaEmbedding, PassesNanAndInfinitiesOnAsTheCpuDoes) {
  for (const float special : specials)
    for (const std::int64_t at : {0, 14, 29}) {
      const auto named = indices(10, 4);
      compare(
          "embedding", 1, [](const auto& w, const auto& i) { return embedding(i, w); },
          array_with({10, 3}, at, special), named);
      compare(
          "embedding_gradient", 16,
          [](const auto& g, const auto& i) { return eval(op::EmbeddingGradient{4}, g, i); },
          array_with({10, 3}, at, special), named);
    }
}

TEST(CudaEmbedding, IndicesThatAreNoRowsLookUpNanAndAddToNone) {
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40})
    for (const std::int64_t n : {2, 8}) {
      const auto named = CudaTensor::Index::from_host(std::vector<std::int64_t>{1, wrong}, {2});
      const auto y = embedding(named, CudaTensor::ones({3, n})).to_host();
      for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(std::isnan(y[i]), static_cast<std::int64_t>(i) >= n) << i;
      const auto sums = eval(op::EmbeddingGradient{3}, CudaTensor::ones({2, n}), named).to_host();
      for (std::size_t i = 0; i < sums.size(); ++i)
        EXPECT_EQ(sums[i], static_cast<std::int64_t>(i) / n == 1 ? 1 : 0) << i;
    }
}

}  // namespace
}  // namespace taut::test
