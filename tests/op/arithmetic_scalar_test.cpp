// Arithmetic of a tensor and a number through the suite. The numbers are exact in float.

#include <taut/op/arithmetic.hpp>

#include <algorithm>
#include <cmath>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

Case with_number(std::string name, Programs call, double (*f)(double), Operand x = {.curved = false},
                 double ulps = 1) {
  return {.name = std::move(name),
          .call = std::move(call),
          .oracle = elementwise([f](const std::vector<double>& v) { return f(v[0]); }),
          .operands = {std::move(x)},
          .shapes = {{{}}, {{0}}, {{0, 3}}, {{7}}, {{33}}, {{3, 5}}, {{1025}}, {{threaded}}},
          .ulps = ulps,
          .reuses = true};
}

#define TAUT_OF_X(expression) programs<1>([](auto&& x) { return expression; })
#define TAUT_X std::forward<decltype(x)>(x)

/// A single element may be the number's everywhere, without a gradient.
Case extreme(std::string name, Programs call, double (*f)(double)) {
  Case c = with_number(std::move(name), std::move(call), f, {.fill = lattice(0.5), .curved = false}, 0);
  std::erase_if(c.shapes, [](const Shapes& shapes) { return shapes[0].rank() == 0; });
  c.forward_shapes = {{{}}};
  return c;
}

std::vector<Case> cases() {
  const Operand nonzero{.fill = away_from_zero(0.4)}, positive{.fill = between(0.4, 3)};
  return {
      with_number("number_plus", TAUT_OF_X(2.5f + TAUT_X), [](double x) { return 2.5 + x; }),
      with_number("plus_number", TAUT_OF_X(TAUT_X + 3), [](double x) { return x + 3; }),
      with_number("number_minus", TAUT_OF_X(1.5 - TAUT_X), [](double x) { return 1.5 - x; }),
      with_number("minus_number", TAUT_OF_X(TAUT_X - 0.5), [](double x) { return x - 0.5; }),
      with_number("times", TAUT_OF_X(-3 * TAUT_X), [](double x) { return -3 * x; }),
      with_number(
          "negative", TAUT_OF_X(-TAUT_X), [](double x) { return -x; }, {.curved = false}, 0),
      with_number(
          "number_over", TAUT_OF_X(2.0 / TAUT_X), [](double x) { return 2 / x; }, nonzero),
      with_number("over_number", TAUT_OF_X(TAUT_X / 7), [](double x) { return x / 7; }),
      with_number(
          "power_3", TAUT_OF_X(pow(TAUT_X, 3)), [](double x) { return x * x * x; }, nonzero, 4),
      with_number(
          "power_of_negative_fraction", TAUT_OF_X(pow(TAUT_X, -1.5)),
          [](double x) { return 1 / (x * std::sqrt(x)); }, positive, 4),
      with_number(
          "power_of_2", TAUT_OF_X(pow(2, TAUT_X)), [](double x) { return std::exp2(x); }, {}, 4),
      extreme("maximum_with_number", TAUT_OF_X(maximum(TAUT_X, 0.25)),
              [](double x) { return std::max(x, 0.25); }),
      extreme("minimum_with_number", TAUT_OF_X(minimum(1.25, TAUT_X)),
              [](double x) { return std::min(x, 1.25); }),
  };
}

INSTANTIATE_TEST_SUITE_P(Scalar, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Scalar, GivesWhatPyTorchDoesAtEdgePoints) {
  const auto power = [](double exponent) {
    return programs<1>([=](auto&& x) { return pow(TAUT_X, exponent); });
  };
  const auto power_of = [](double base) { return programs<1>([=](auto&& x) { return pow(base, TAUT_X); }); };
  const std::map<std::string, Programs> programs_by_name{{"power_0", power(0)},
                                                         {"power_0.5", power(0.5)},
                                                         {"power_1", power(1)},
                                                         {"power_2", power(2)},
                                                         {"power_3", power(3)},
                                                         {"power_-1", power(-1)},
                                                         {"power_-1.5", power(-1.5)},
                                                         {"power_of_0", power_of(0)},
                                                         {"power_of_1", power_of(1)},
                                                         {"power_of_2", power_of(2)},
                                                         {"negative", TAUT_OF_X(-TAUT_X)},
                                                         {"over_0", TAUT_OF_X(TAUT_X / 0)},
                                                         {"1_over", TAUT_OF_X(1 / TAUT_X)}};
  const auto negative_without_root = [](const Difference::Point& at) {
    return (at.operand < 0 && at.x[0] == -HUGE_VAL) ||
           (at.operand == 0 && (at.x[0] == -HUGE_VAL || (at.x[0] == 0 && std::signbit(at.x[0]))));
  };
  const auto power_by_ieee = [](const Difference::Point& at) {
    return at.got == (at.operand == 0 && at.x[0] != 0 ? 0 : HUGE_VAL);
  };
  const std::vector<Difference> differences{
      {"power_0.5", "PyTorch takes the square root, which differs from the power at -0 and at -inf",
       negative_without_root, power_by_ieee}};
  EXPECT_TRUE(none(check_fixtures("arithmetic_scalar", programs_by_name, {}, differences)));
}

}  // namespace
}  // namespace taut::test
