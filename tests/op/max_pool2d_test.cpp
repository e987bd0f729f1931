// Max pooling and what its derivatives are made of, through the suite.

#include <taut/op/max_pool2d.hpp>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// Calls visit(x, y) with the position of the largest element of each window.
template <class Visit>
void for_each_maximum(const op::MaxPool2d& pool, const Reference& x, const Visit& visit) {
  const Shape y = pool.shape(x.shape);
  for_each_index(y, [&](const Index& at) {
    std::size_t best = 0;
    bool found = false;
    for (std::int64_t k = 0; k < pool.kernel.h; ++k)
      for (std::int64_t l = 0; l < pool.kernel.w; ++l) {
        const auto row = at[2] * pool.steps().h + k * pool.dilation.h - pool.padding.h;
        const auto column = at[3] * pool.steps().w + l * pool.dilation.w - pool.padding.w;
        if (row < 0 || row >= x.shape[2] || column < 0 || column >= x.shape[3]) continue;
        const auto i = flat(x.shape, {at[0], at[1], row, column});
        if (!found || x.values[i] > x.values[best]) best = i;
        found = true;
      }
    visit(best, flat(y, at));
  });
}

Reference zeros(const Shape& shape) { return {shape, std::vector<double>(element_count(shape))}; }

Oracle pooled(const op::MaxPool2d& pool) {
  return [=](const std::vector<Reference>& operands) {
    Reference y = zeros(pool.shape(operands[0].shape));
    for_each_maximum(pool, operands.back(),
                     [&](std::size_t i, std::size_t j) { y.values[j] = operands[0].values[i]; });
    return y;
  };
}

Oracle scattered(const op::MaxPool2d& pool) {
  return [=](const std::vector<Reference>& operands) {
    Reference x = zeros(operands[1].shape);
    x.scale = x.values;
    for_each_maximum(pool, operands[1], [&](std::size_t i, std::size_t j) {
      x.values[i] += operands[0].values[j], x.scale[i] += std::abs(operands[0].values[j]);
    });
    return x;
  };
}

template <class Op> auto applied(const Op& op) {
  return [op](auto&&... xs) { return eval(op, std::forward<decltype(xs)>(xs)...); };
}

const op::MaxPool2d overlapping{.kernel = 3, .stride = 2, .padding = 1};

std::vector<Case> cases() {
  const Operand place{.fill = distinct(), .differentiable = false};
  const op::MaxPool2d uneven{.kernel = {1, 2}, .stride = {2, 1}, .dilation = {1, 2}};
  return {{.name = "max_pool2d",
           .call = programs<1>(applied(op::MaxPool2d{})),
           .oracle = pooled({}),
           .operands = {{.fill = distinct(), .curved = false}},
           .shapes = {{{2, 3, 4, 5}}, {{1, 17, 2, 2}}, {{0, 2, 2, 2}}, {{2, 0, 3, 3}}},
           .forward_shapes = {{{3, 64, 32, 32}}},
           .rejected = {{{3, 4, 4}}, {{1, 1, 1, 4}}}},
          {.name = "max_pool2d_overlapping",
           .call = programs<1>(applied(overlapping)),
           .oracle = pooled(overlapping),
           .operands = {{.fill = distinct(), .curved = false}},
           .shapes = {{{2, 2, 5, 7}}, {{1, 2, 1, 1}}, {{1, 2, 2, 8}}},
           .error = "max_pool2d"},
          {.name = "max_pool2d_uneven",
           .call = programs<1>(applied(uneven)),
           .oracle = pooled(uneven),
           .operands = {{.fill = distinct(), .curved = false}},
           .shapes = {{{2, 2, 3, 5}}},
           .error = "max_pool2d"},
          {.name = "max_pool2d_pick",
           .call = programs<2>(applied(op::MaxPool2dPick{overlapping})),
           .oracle = pooled(overlapping),
           .operands = {{.curved = false}, place},
           .shapes = {{{2, 2, 5, 4}, {2, 2, 5, 4}}},
           .rejected = {{{2, 2, 5, 4}, {2, 2, 5, 5}}}},
          {.name = "max_pool2d_gradient",
           .call = programs<2>(applied(op::MaxPool2dGradient{overlapping})),
           .oracle = scattered(overlapping),
           .operands = {{.curved = false}, place},
           .shapes = {{{2, 2, 3, 2}, {2, 2, 5, 4}}},
           .rejected = {{{2, 2, 3, 3}, {2, 2, 5, 4}}}}};
}

INSTANTIATE_TEST_SUITE_P(MaxPool2d, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(MaxPool2d, RejectsOptionsThatMakeNoSense) {
  const auto x = Float::ones({1, 2, 4, 4});
  EXPECT_THROW(max_pool2d(x, {.kernel = 0}), ShapeError);
  EXPECT_THROW(max_pool2d(x, {.stride = -1}), ShapeError);
  EXPECT_THROW(max_pool2d(x, {.kernel = 3, .padding = 2}), ShapeError);
  EXPECT_THROW(max_pool2d(Float::ones({1, 1, 2, 2}), {.kernel = 2, .padding = 1, .dilation = 3}), ShapeError);
  EXPECT_THROW(max_pool2d(Float::ones({1, 1, 0, 4}), {.padding = 1}), ShapeError);
}

TEST(MaxPool2d, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("max_pool2d", {{"max_pool2d", programs<1>(applied(op::MaxPool2d{}))},
                                                 {"max_pool2d_padded", programs<1>(applied(overlapping))}})));
}

}  // namespace
}  // namespace taut::test
