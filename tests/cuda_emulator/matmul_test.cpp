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

TEST(CudaMatmul, AddsTheBiasOfALinearLayer) {
  for (const Shape& x : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}, Shape{0, 4}})
    compare(
        "linear " + to_string(x), 32,
        [](const auto& images, const auto& w, const auto& b) { return linear(images, w, b); }, array(x, 1),
        array({5, 4}, 2), array({5}, 3));
  compare(
      "linear of nothing", 32, [](const auto& x, const auto& w, const auto& b) { return linear(x, w, b); },
      array({3, 0}), array({5, 0}), array({5}, 3));
}

}  // namespace
