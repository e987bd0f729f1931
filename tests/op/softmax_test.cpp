// Softmax and its logarithm through the suite, and their edge points.

#include <taut/op/softmax.hpp>

#include <cmath>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// softmax or log_softmax by definition: the axis is `axis` from the end.
Oracle along(int axis, bool logarithm) {
  return [=](const std::vector<Reference>& operands) {
    const Reference& x = operands[0];
    Reference exponentials = x;
    for (double& value : exponentials.values) value = std::exp(value);
    const Reference sums = sum_over(exponentials, [&](int i) { return i == x.shape.rank() + axis; });
    Reference result{x.shape, {}};
    for_each_index(x.shape, [&](const Index& index) {
      const auto i = flat(x.shape, index);
      const double total = sums.values[flat_broadcast(sums.shape, index)];
      result.values.push_back(logarithm ? x.values[i] - std::log(total) : exponentials.values[i] / total);
      if (logarithm) result.scale.push_back(std::abs(x.values[i]) + std::abs(std::log(total)) + 1);
    });
    return result;
  };
}

/// The axis goes through the last one, as by default, one in the middle, and the first.
Case softmax_case(std::string name, Programs call, int axis, bool logarithm) {
  const std::string error = logarithm ? "log_softmax" : "softmax";
  Case c{.name = std::move(name),
         .call = std::move(call),
         .oracle = along(axis, logarithm),
         .operands = {{.fill = between(-3, 3)}},
         .shapes = {},
         .ulps = 10,
         .error = error};
  if (axis == -1) {
    c.shapes = {{{7}}, {{33}}, {{3, 5}}, {{2, 3, 4}}, {{4, 31}}, {{2, 1025}}, {{3, 0}}, {{0, 3}}, {{0}}};
    c.shapes.push_back({{700, 101}});
    c.forward_shapes = {{{1}}, {{5, 1}}, {{1, 40000}}, {{20000, 2}}};
    c.rejected = {{{}}};
  } else {
    c.shapes = {{{3, 5}}, {{33, 2}}, {{2, 3, 4}}, {{2, 2, 7, 3}}, {{0, 3}}, {{3, 0}}, {{101, 300}}};
    c.forward_shapes = {{{1, 7}}};
    c.rejected = {{{}}, {{3}}};
  }
  return c;
}

std::vector<Case> cases() {
  return {
      softmax_case("softmax", programs<1>(TAUT_FUNCTION(softmax)), -1, false),
      softmax_case("log_softmax", programs<1>(TAUT_FUNCTION(log_softmax)), -1, true),
      softmax_case("softmax_of_second_last_axis", programs<1>([](auto&& x) { return softmax(x, -2); }), -2,
                   false),
      softmax_case("log_softmax_of_second_last_axis",
                   programs<1>([](auto&& x) { return log_softmax(x, -2); }), -2, true),
  };
}

INSTANTIATE_TEST_SUITE_P(Softmax, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Softmax, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("softmax", programs_of(cases()), {.ulps = 8})));
}

}  // namespace
}  // namespace taut::test
