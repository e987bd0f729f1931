#include <taut/cpu/cpu.hpp>
#include <taut/nn/linear.hpp>

#include <gtest/gtest.h>

namespace taut::test {
namespace {

/// Products without oneDNN, which keeps no weights, and takes smaller ones the narrower the vectors are.
struct Portable {
  Portable() { cpu::use_onednn(false); }
  ~Portable() { cpu::use_onednn(true); }
};

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

TEST(Linear, PacksWeightsThatAreUsedAgainBeforeTheyChange) {
  const Portable portable;
  Rng rng{1};
  const auto x = CpuArray::normal({37, 50}, 0, 1, rng);
  auto layer = nn::Linear<CpuArray>::make(50, 40, rng);
  const auto packed_in = [&](int calls) {
    const auto start = cpu::conversions().kernels;
    for (int i = 0; i < calls; ++i) layer(x);
    return cpu::conversions().kernels - start;
  };
  const auto first = layer(x).to_host();
  EXPECT_EQ(packed_in(3), 1);
  EXPECT_EQ(layer(x).to_host(), first);
  EXPECT_EQ(layer.relu(x).to_host(), relu(layer(x)).to_host());
  layer.weight = std::move(layer.weight) * 2.0f;  // in place
  layer.bias = std::move(*layer.bias) * 2.0f;
  EXPECT_EQ(packed_in(1), 0);
  EXPECT_EQ(packed_in(3), 1);
  const auto doubled = layer(x).to_host();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(doubled[i], 2 * first[i]);
  const auto fresh = layer;  // shares the weights, and what is kept with them
  const auto start = cpu::conversions().kernels;
  fresh(x);
  EXPECT_EQ(cpu::conversions().kernels, start);
}

TEST(Linear, PacksSharedWeightsForEachShape) {
  const Portable portable;
  Rng rng{1};
  const auto wide = CpuArray::normal({40, 50}, 0, 1, rng), tall = reshape(wide, {50, 40});
  const auto x = CpuArray::normal({37, 50}, 0, 1, rng), y = CpuArray::normal({37, 40}, 0, 1, rng);
  const auto first = linear(x, wide, CpuArray::zeros({40})).to_host(),
             second = linear(y, tall, CpuArray::zeros({50})).to_host();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(linear(x, wide, CpuArray::zeros({40})).to_host(), first);
    EXPECT_EQ(linear(y, tall, CpuArray::zeros({50})).to_host(), second);
  }
}

}  // namespace
}  // namespace taut::test
