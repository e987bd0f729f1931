// The arithmetic operators through the suite, and their edge points.

#include <taut/op/arithmetic.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// A case of two operands that broadcast.
Case binary(std::string name, Programs call, double (*f)(double, double), Operand a, Operand b,
            double ulps = 1) {
  return {.name = std::move(name),
          .call = std::move(call),
          .oracle = elementwise([f](const std::vector<double>& x) { return f(x[0], x[1]); }),
          .operands = {std::move(a), std::move(b)},
          .shapes = binary_shapes(),
          .rejected = binary_rejected(),
          .ulps = ulps,
          .reuses = true};
}

/// A maximum or minimum: an operand of one element may be the other one's everywhere, without a gradient.
Case extreme(std::string name, Programs call, double (*f)(double, double)) {
  Case c = binary(std::move(name), std::move(call), f, {.fill = lattice(0), .curved = false},
                  {.fill = lattice(0.5), .curved = false}, 0);
  c.shapes.clear();
  for (const Shapes& shapes : binary_shapes()) {
    const bool single = shapes[0].size() == 1 || shapes[1].size() == 1;
    (single ? c.forward_shapes : c.shapes).push_back(shapes);
  }
  return c;
}

std::vector<Case> cases() {
  const Operand linear{.curved = false};
  return {
      binary(
          "add", programs<2>(TAUT_FUNCTION(operator+)), [](double a, double b) { return a + b; }, linear,
          linear),
      binary(
          "sub", programs<2>(TAUT_FUNCTION(operator-)), [](double a, double b) { return a - b; }, linear,
          linear),
      binary("mul", programs<2>(TAUT_FUNCTION(operator*)), [](double a, double b) { return a * b; }, {}, {}),
      binary("div", programs<2>(TAUT_FUNCTION(operator/)), [](double a, double b) { return a / b; }, {},
             {.fill = away_from_zero(0.4)}),
      binary(
          "pow", programs<2>(TAUT_FUNCTION(pow)), [](double a, double b) { return std::pow(a, b); },
          {.fill = between(0.4, 3)}, {}, 4),
      extreme("maximum", programs<2>(TAUT_FUNCTION(maximum)),
              [](double a, double b) { return std::max(a, b); }),
      extreme("minimum", programs<2>(TAUT_FUNCTION(minimum)),
              [](double a, double b) { return std::min(a, b); }),
  };
}

INSTANTIATE_TEST_SUITE_P(Arithmetic, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Arithmetic, GivesWhatPyTorchDoesAtEdgePoints) {
  using Point = Difference::Point;
  const auto gradient_at_nan = [](const Point& at) {
    return at.operand >= 0 && (std::isnan(at.x[0]) || std::isnan(at.x[1]));
  };
  const auto logarithm_of_denormal = [](const Point& at) {
    return at.operand == 1 && std::abs(at.x[0]) < std::numeric_limits<double>::min();
  };
  const auto roughly = [](const Point& at) { return std::abs(at.got / at.expected - 1) < 0.06; };
  const std::string shared =
      "NaN shares the gradient like a tie, where PyTorch gives it to both operands whole";
  const auto largest_to_the_1 = [](const Point& at) {
    return at.operand < 0 && at.x[1] == 1 && std::abs(at.x[0]) == std::numeric_limits<double>::max();
  };
  const auto the_base = [](const Point& at) { return at.got == at.x[0]; };
  const std::vector<Difference> differences{
      {"pow", "the power of 1 of the largest double, where PyTorch overflows", largest_to_the_1, the_base},
      {"maximum", shared, gradient_at_nan, gives(0.5)},
      {"minimum", shared, gradient_at_nan, gives(0.5)},
      {"pow", "xsimd's log loses the scale of denormal doubles", logarithm_of_denormal, roughly, false}};
  EXPECT_TRUE(none(check_fixtures("arithmetic", programs_of(cases()), {}, differences)));
}

}  // namespace
}  // namespace taut::test
