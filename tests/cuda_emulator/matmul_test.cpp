#include "taut/cuda/matmul.hpp"

#include "compare.hpp"

namespace {

using taut::Shape;
using taut::test::array;
using taut::test::compare;

TEST(CudaMatmul, MultipliesBatchesThatBroadcast) {
  struct Case {
    Shape a, b;
    taut::op::Matmul op;
  };
  const Case cases[] = {{{3, 4}, {4, 5}, {}},
                        {{4, 3}, {4, 5}, {.transpose_a = true}},
                        {{3, 4}, {5, 4}, {.transpose_b = true}},
                        {{4, 3}, {5, 4}, {true, true}},
                        {{2, 3, 4}, {4, 5}, {}},
                        {{2, 4, 3}, {4, 5}, {.transpose_a = true}},
                        {{3, 4}, {2, 4, 5}, {}},
                        {{2, 1, 3, 4}, {3, 4, 5}, {}},
                        {{6, 33, 31}, {6, 31, 65}, {}},
                        {{3, 0}, {0, 5}, {}},
                        {{0, 4}, {4, 5}, {}},
                        {{0, 3, 4}, {4, 5}, {}}};
  for (const Case& c : cases)
    compare(
        "matmul " + to_string(c.a) + to_string(c.b), 32,
        [&](const auto& a, const auto& b) { return eval(c.op, a, b); }, array(c.a, 1), array(c.b, 2));
}

/// Runs f(x, weight, bias), a linear layer of any kind, on inputs of several ranks, and of no elements.
template <class F> void compare_layer(const std::string& name, const F& f) {
  for (const Shape& x : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}, Shape{0, 4}})
    compare(name + " " + to_string(x), 32, f, array(x, 1), array({5, 4}, 2), array({5}, 3));
  compare(name + " of nothing", 32, f, array({3, 0}), array({5, 0}), array({5}, 3));
}

TEST(CudaMatmul, AddsTheBiasOfALinearLayer) {
  compare_layer("linear", [](const auto&... xs) { return linear(xs...); });
}

TEST(CudaMatmul, EndsALinearLayerWithAFunction) {
  compare_layer("linear_relu", [](const auto&... xs) { return linear_relu(xs...); });
  compare_layer("linear_gelu_tanh", [](const auto&... xs) { return linear_gelu_tanh(xs...); });
  const auto special = [](const auto& f) {
    compare("special values", 32, f, taut::test::array_with({3, 4}, 5, std::nanf("")), array({5, 4}, 2),
            array({5}, 3));
  };
  special([](const auto&... xs) { return linear_relu(xs...); });
  special([](const auto&... xs) { return linear_gelu_tanh(xs...); });
}

}  // namespace
