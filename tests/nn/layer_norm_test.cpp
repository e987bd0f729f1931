#include <taut/nn/layer_norm.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <taut/taut.hpp>

using namespace taut;
using Double = BasicCpuArray<double>;
using G = Grad<Double>;

TEST(LayerNorm, StartsAsPyTorchDoes) {
  const auto norm = nn::LayerNorm<G>::make({2, 3});
  EXPECT_EQ(norm.weight.value().to_host(), std::vector<double>(6, 1));
  EXPECT_EQ(norm.bias.value().to_host(), std::vector<double>(6, 0));
  EXPECT_EQ(norm.weight.shape(), (Shape{2, 3}));
  EXPECT_EQ(norm.eps, 1e-5);
}

TEST(LayerNorm, MatchesItsFormula) {
  const auto norm = nn::LayerNorm<G>::make({2, 3}, 0.1);
  const auto x = Double::from_host(std::vector<double>{1, 2, 3, 4, 5, 6}, {1, 2, 3});
  Tape<Double> tape;
  const auto y = norm(G(x));
  EXPECT_NEAR(y.value().to_host()[0], -2.5 / std::sqrt(17.5 / 6 + 0.1), 1e-12);
  tape.backward(y, Double::ones({1, 2, 3}));
  EXPECT_EQ(norm.bias.grad().to_host(), std::vector<double>(6, 1));
  EXPECT_NEAR(norm.weight.grad().to_host()[5], 2.5 / std::sqrt(17.5 / 6 + 0.1), 1e-12);
}

TEST(LayerNorm, IsAModelWithPyTorchsNames) {
  const auto norm = nn::LayerNorm<G>::make({4});
  EXPECT_EQ(parameter_count(norm), 8);
  EXPECT_EQ(named_tensors(norm)[0].name, "weight");
  EXPECT_EQ(named_tensors(norm)[1].name, "bias");
  static_assert(nn::LayerNorm<ShapeTensor>::make({4})(ShapeTensor{{2, 4}}).shape() == Shape{2, 4});
}
