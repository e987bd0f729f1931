#include <gtest/gtest.h>

#include <taut/cpu/cpu.hpp>
#include <taut/nn/linear.hpp>
#include <taut/nn/summary.hpp>

using namespace taut;

namespace {

template <AnyTensor T> struct Net {
  nn::Linear<T> fc;
  Buffer<T> running;
};

TEST(Summary, ListsTensorsInColumnsAndSums) {
  Rng rng(1);
  const Net<Grad<CpuArray>> net{nn::Linear<Grad<CpuArray>>::make(12, 3, rng), {CpuArray::zeros({4})}};
  EXPECT_EQ(summary(net),
            "fc.weight  [3, 12]  36\n"
            "fc.bias    [3]      3\n"
            "running    [4]      4  not trained\n"
            "39 parameters; not trained: 4\n");
}

TEST(Summary, WorksOnShapesAlone) {
  EXPECT_EQ(summary(nn::Linear<ShapeTensor>::make(2, 1)),
            "weight  [1, 2]  2\n"
            "bias    [1]     1\n"
            "3 parameters\n");
}

}  // namespace
