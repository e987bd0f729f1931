#include "taut/cuda/conv2d.hpp"

#include "compare.hpp"

namespace {

using taut::Shape;
using taut::op::Conv2d;
using taut::test::array;
using taut::test::compare;

struct Case {
  Shape x, w;
  Conv2d op;
};

const Case cases[] = {{{2, 3, 8, 9}, {4, 3, 3, 3}, {.padding = 1}},
                      {{2, 3, 9, 8}, {4, 3, 3, 2}, {.stride = {2, 1}, .padding = {0, 1}}},
                      {{1, 4, 7, 7}, {6, 2, 3, 3}, {.padding = 2, .dilation = 2, .groups = 2}},
                      {{3, 5, 4, 4}, {5, 1, 3, 3}, {.padding = 1, .groups = 5}},
                      {{2, 8, 1, 1}, {4, 8, 3, 3}, {.padding = 1}},
                      {{2, 8, 5, 5}, {4, 8, 1, 1}, {.stride = 2}},
                      {{0, 3, 8, 8}, {4, 3, 3, 3}, {}},
                      {{2, 0, 8, 8}, {4, 0, 3, 3}, {}}};

TEST(CudaConv2d, ConvolvesAndAddsTheBias) {
  for (const Case& c : cases) {
    const auto what = "conv2d " + to_string(c.x) + to_string(c.w);
    compare(
        what, 64, [&](const auto& x, const auto& w) { return conv2d(x, w, c.op); }, array(c.x, 1),
        array(c.w, 2));
    compare(
        what + " with a bias", 64,
        [&](const auto& x, const auto& w, const auto& b) { return conv2d(x, w, b, c.op); }, array(c.x, 1),
        array(c.w, 2), array({c.w[0]}, 3));
  }
}

TEST(CudaConv2d, EndsWithReluAndWithAResidual) {
  for (const Case& c : cases) {
    const auto what = "conv2d " + to_string(c.x) + to_string(c.w);
    const auto x = array(c.x, 1), w = array(c.w, 2), bias = array({c.w[0]}, 3),
               residual = array(c.op.shape(c.x, c.w), 4);
    compare(
        what + " and ReLU", 64, [&](const auto&... xs) { return conv2d_relu(xs..., c.op); }, x, w, bias);
    compare(
        what + " with a residual and ReLU", 64,
        [&](const auto&... xs) { return conv2d_add_relu(xs..., c.op); }, x, w, bias, residual);
  }
}

TEST(CudaConv2d, KeepsNaNInReluAtItsEnd) {
  const auto on_device = [](const auto& x) { return taut::test::on_device<float>(x); };
  const auto x = on_device(taut::test::array_with({1, 4, 4, 4}, 5, NAN)), w = on_device(array({4, 4, 3, 3}));
  const auto bias = on_device(array({4})), residual = on_device(array({1, 4, 4, 4}));
  EXPECT_TRUE(std::isnan(conv2d_relu(x, w, bias, {.padding = 1}).to_host()[5]));
  EXPECT_TRUE(std::isnan(conv2d_add_relu(x, w, bias, residual, {.padding = 1}).to_host()[5]));
}

TEST(CudaConv2d, HasTheGradientsOfTheCpu) {
  for (const Case& c : cases) {
    const Shape y = c.op.shape(c.x, c.w);
    const auto what = " gradient " + to_string(c.x) + to_string(c.w);
    const taut::op::Conv2dDataGradient data{c.op, {c.x[2], c.x[3]}};
    const taut::op::Conv2dWeightGradient weight{c.op, {c.w[2], c.w[3]}};
    compare(
        "data" + what, 64, [&](const auto& g, const auto& w) { return eval(data, g, w); }, array(y, 1),
        array(c.w, 2));
    compare(
        "weight" + what, 64, [&](const auto& g, const auto& x) { return eval(weight, g, x); }, array(y, 1),
        array(c.x, 2));
  }
}

TEST(CudaConv2d, KeepsChannelsTogether) {
  const auto x = taut::test::on_device<float>(array({2, 3, 8, 8}));
  const auto w = taut::test::on_device<float>(array({4, 3, 3, 3}));
  EXPECT_EQ(conv2d(x, w).layout(), taut::cuda::Layout::channels_last);
}

}  // namespace
