#include <gtest/gtest.h>

#include <taut/taut.hpp>

using namespace taut;

namespace {

constexpr std::int64_t dense_parameters(std::int64_t in, std::int64_t out) { return in * out + out; }

// A whole model with a vector of layers, made and run by the compiler.
constexpr Shape run_mlp(const Shape& input) {
  return nn::Mlp<ShapeTensor>::make({784, 128, 64, 10})(ShapeTensor(input)).shape();
}
static_assert(run_mlp({64, 784}) == Shape{64, 10});
static_assert(run_mlp({1, 784}) == Shape{1, 10});

static_assert(parameter_count(nn::Mlp<ShapeTensor>::make({784, 128, 64, 10})) ==
              dense_parameters(784, 128) + dense_parameters(128, 64) + dense_parameters(64, 10));

constexpr std::int64_t mlp_flops(std::int64_t batch) {
  return cost(nn::Mlp<ShapeTensor>::make({784, 128, 64, 10}), Shape{batch, 784}).flops;
}
// Two a multiply-add, one a bias and one a ReLU.
static_assert(mlp_flops(64) == 64 * (2 * (784 * 128 + 128 * 64 + 64 * 10) + (128 + 64 + 10) + (128 + 64)));

constexpr Shape losses(const Shape& logits) {
  return cross_entropy(log_softmax(ShapeTensor(logits)), ShapeTensor(Shape{logits[0]})).shape();
}
static_assert(losses({8, 10}) == Shape{});

static_assert(concat(1, ShapeTensor{{2, 3}}, ShapeTensor{{2, 4}}, ShapeTensor{{2, 0}}).shape() ==
              Shape{2, 7});
static_assert(slice(ShapeTensor{{5, 8}}, -1, 1, -1, 3).shape() == Shape{5, 2});
static_assert(transpose(ShapeTensor{{2, 3, 4}}).shape() == Shape{2, 4, 3});
static_assert(reshape(ShapeTensor{{2, 3, 4}}, {-1, 6}).shape() == Shape{4, 6});
static_assert(flatten(ShapeTensor{{2, 3, 4}}).shape() == Shape{2, 12});
static_assert(mean(ShapeTensor{{2, 3, 4}}, {0, -1}, true).shape() == Shape{1, 3, 1});
static_assert(argmax(ShapeTensor{{2, 3}}).shape() == Shape{2});
static_assert(matmul(ShapeTensor{{5, 1, 2, 3}}, ShapeTensor{{7, 4, 3}}, {.transpose_b = true}).shape() ==
              Shape{5, 7, 2, 4});
static_assert((2.0f * ShapeTensor{{2, 1}} + ShapeTensor{{3}}).shape() == Shape{2, 3});

constexpr std::int64_t bytes(const auto& op, const std::same_as<Shape> auto&... operands) {
  return count_bytes(op, 4, DenseSize{operands}...);
}
static_assert(bytes(op::Matmul{}, Shape{2, 3}, Shape{3, 4}) == 4 * (2 * 3 + 3 * 4 + 2 * 4));
static_assert(bytes(op::Add{}, Shape{2, 1}, Shape{3}) == 4 * (2 + 3 + 6));
static_assert(bytes(op::Sum{}, Shape{2, 3}) == 4 * (6 + 1));
static_assert(count_bytes(op::Argmax{}, 8, DenseSize{{2, 3}, 2}) == 2 * 6 + 8 * 2);
static_assert(bytes(op::Reshape{{6}}, Shape{2, 3}) == 0);
static_assert(bytes(op::Permute{{1, 0}}, Shape{2, 3}) == 4 * 12);
static_assert(bytes(op::BroadcastTo{{2, 3}}, Shape{3}) == 4 * (3 + 6));
static_assert(bytes(op::BroadcastTo{{2, 3}}, Shape{2, 3}) == 0);
static_assert(bytes(op::SumTo{{3}}, Shape{2, 3}) == 4 * (3 + 6));
static_assert(bytes(op::SumTo{{2, 3}}, Shape{2, 3}) == 0);
static_assert(count_flops(op::SumTo{{2, 3}}, Shape{2, 3}) == 0);
static_assert(bytes(op::Slice{0, 0, 2}, Shape{100, 3}) == 4 * 2 * 6);
static_assert(bytes(op::Unslice{0, 0, 1, 100}, Shape{2, 3}) == 4 * (6 + 300));
static_assert(count_bytes(op::Pick{}, 4, DenseSize{{5, 100}}, DenseSize{{5}, 8}) == 5 * (4 + 4 + 8));
// The derivative of a product by one factor reads the gradient and the other factor.
static_assert(bytes(op::Partial<op::Mul, 0>{}, Shape{2}, Shape{2}, Shape{2}) == 4 * 3 * 2);
static_assert(bytes(op::Partial<op::Where, 1>{}, Shape{2}, Shape{2}, Shape{2}, Shape{2}) == 4 * 3 * 2);
static_assert(bytes(op::Partial<op::Partial<op::Div, 1>, 2>{}, Shape{2}, Shape{2}, Shape{2}, Shape{2}) ==
              4 * 5 * 2);
static_assert(bytes(op::Conv2d{.padding = 1}, Shape{2, 3, 8, 8}, Shape{4, 3, 3, 3}, Shape{4}) ==
              4 * (2 * 3 * 64 + 4 * 27 + 4 + 2 * 4 * 64));
// A stride that is larger than the kernel leaves pixels out.
static_assert(bytes(op::Conv2d{.stride = 2}, Shape{2, 3, 8, 8}, Shape{4, 3, 1, 1}) ==
              4 * (2 * 3 * 16 + 4 * 3 + 2 * 4 * 16));
static_assert(bytes(op::Conv2dWeightGradient{{.stride = 2}, 1}, Shape{2, 4, 4, 4}, Shape{2, 3, 8, 8}) ==
              4 * (2 * 4 * 16 + 2 * 3 * 16 + 4 * 3));
static_assert(bytes(op::Conv2dDataGradient{{.stride = 2}, 8}, Shape{2, 4, 4, 4}, Shape{4, 3, 1, 1}) ==
              4 * (2 * 4 * 16 + 4 * 3 + 2 * 3 * 64));

TEST(ShapeTensor, NamesTheOperatorThatDisagrees) {
  const auto model = nn::Mlp<ShapeTensor>::make({784, 128, 10});
  try {
    model(ShapeTensor{{64, 783}});
    FAIL() << "must throw";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "linear: the last dimension of the input must be the second of the weight, [out, in]: [64, "
                 "783] x [128, 784]");
  }
}

TEST(ShapeTensor, AgreesWithTheArrays) {
  Rng rng(1);
  const auto model = nn::Mlp<CpuArray>::make({7, 5, 3}, rng);
  EXPECT_EQ(model(CpuArray::ones({4, 7})).shape(), rebind<ShapeTensor>(model)(ShapeTensor{{4, 7}}).shape());
}

}  // namespace
