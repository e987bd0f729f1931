#include <taut/cpu/cpu.hpp>
#include <taut/nn/linear.hpp>

#include <gtest/gtest.h>

namespace taut::test {
namespace {

TEST(Linear, EndsWithAFunctionWithAndWithoutABias) {
  Rng rng{1};
  const auto x = CpuArray::normal({3, 5}, 0, 1, rng);
  for (const bool bias : {true, false}) {
    const auto layer = nn::Linear<CpuArray>::make(5, 4, rng, {.bias = bias});
    ASSERT_EQ(layer.bias.has_value(), bias);
    EXPECT_EQ(layer.relu(x).to_host(), relu(layer(x)).to_host());
    EXPECT_EQ(layer.gelu_tanh(x).to_host(), gelu_tanh(layer(x)).to_host());
    EXPECT_NE(layer.relu(x).to_host(), layer(x).to_host());
  }
}

}  // namespace
}  // namespace taut::test
