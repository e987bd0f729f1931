#include <taut/nn/embedding.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <taut/taut.hpp>

using namespace taut;
using G = Grad<CpuArray>;

TEST(Embedding, StartsAsPyTorchDoes) {
  Rng rng{1};
  const auto table = nn::Embedding<G>::make(500, 40, rng);
  EXPECT_EQ(table.weight.shape(), (Shape{500, 40}));
  const auto weight = table.weight.value();  // 20,000 standard normal numbers, within six deviations
  EXPECT_NEAR(mean(weight).item(), 0, 6 / std::sqrt(20000.0));
  EXPECT_NEAR(mean(square(weight)).item(), 1, 6 * std::sqrt(2 / 20000.0));
}

TEST(Embedding, TrainsTheRowsThatAreNamed) {
  Rng rng{1};
  const auto table = nn::Embedding<G>::make(5, 3, rng);
  Tape<CpuArray> tape;
  const auto y = table(CpuArray::Index::from_host(std::vector<std::int64_t>{3, 3, 4, 3}, {2, 2}));
  ASSERT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(y.value().to_host()[6], table.weight.value().to_host()[12]);
  tape.backward(y, CpuArray::ones({2, 2, 3}));
  EXPECT_EQ(table.weight.grad().to_host(), (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 1, 1, 1}));
}

TEST(Embedding, IsAModelWithPyTorchsNames) {
  Rng rng{1};
  const auto table = nn::Embedding<G>::make(5, 3, rng);
  EXPECT_EQ(parameter_count(table), 15);
  EXPECT_EQ(named_tensors(table)[0].name, "weight");
  static_assert(nn::Embedding<ShapeTensor>::make(10, 4)(ShapeTensor{{2, 3}}).shape() == Shape{2, 3, 4});
}
