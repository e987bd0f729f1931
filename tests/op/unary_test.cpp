// The functions of one tensor through the suite, and their edge points.

#include <taut/op/unary.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

Case unary(std::string name, Programs call, double (*f)(double), Operand x = {}, double ulps = 2) {
  return {.name = std::move(name),
          .call = std::move(call),
          .oracle = elementwise([f](const std::vector<double>& v) { return f(v[0]); }),
          .operands = {std::move(x)},
          .shapes = unary_shapes(),
          .ulps = ulps,
          .reuses = true};
}

/// x Φ(x), whose two factors nearly cancel below 0: the rounding errors are those of x / 2.
Case gelu_case() {
  Case c = unary("gelu", programs<1>(TAUT_FUNCTION(gelu)), nullptr, {}, 16);
  c.oracle = [](const std::vector<Reference>& operands) {
    Reference result{operands[0].shape, {}};
    for (const double x : operands[0].values) {
      result.values.push_back(x * std::erfc(-x / std::numbers::sqrt2) / 2);
      result.scale.push_back(std::abs(x) / 2);
    }
    return result;
  };
  return c;
}

/// A single element may be negative, without a gradient.
Case relu_case() {
  Case c = unary(
      "relu", programs<1>(TAUT_FUNCTION(relu)), [](double x) { return x > 0 ? x : 0; },
      {.fill = away_from_zero(), .curved = false}, 0);
  std::erase_if(c.shapes, [](const Shapes& shapes) { return shapes[0].size() == 1; });
  c.forward_shapes = {{{}}, {{1}}};
  return c;
}

std::vector<Case> cases() {
  const Operand positive{.fill = between(0.3, 3)}, kinked{.fill = away_from_zero(), .curved = false};
  return {
      unary("exp", programs<1>(TAUT_FUNCTION(exp)), [](double x) { return std::exp(x); }),
      unary(
          "log", programs<1>(TAUT_FUNCTION(log)), [](double x) { return std::log(x); }, positive),
      unary(
          "sqrt", programs<1>(TAUT_FUNCTION(sqrt)), [](double x) { return std::sqrt(x); }, positive, 1),
      unary(
          "square", programs<1>(TAUT_FUNCTION(square)), [](double x) { return x * x; }, {}, 1),
      unary(
          "abs", programs<1>(TAUT_FUNCTION(abs)), [](double x) { return x < 0 ? -x : x; }, kinked, 0),
      unary("sin", programs<1>(TAUT_FUNCTION(sin)), [](double x) { return std::sin(x); },
            {.fill = between(-6, 6)}),
      unary("cos", programs<1>(TAUT_FUNCTION(cos)), [](double x) { return std::cos(x); },
            {.fill = between(-6, 6)}),
      unary(
          "erf", programs<1>(TAUT_FUNCTION(erf)), [](double x) { return std::erf(x); }, {}, 16),
      unary("tanh", programs<1>(TAUT_FUNCTION(tanh)), [](double x) { return std::tanh(x); }),
      unary("sigmoid", programs<1>(TAUT_FUNCTION(sigmoid)), [](double x) { return 1 / (1 + std::exp(-x)); },
            {.fill = between(-4, 4)}),
      relu_case(),
      gelu_case(),
  };
}

INSTANTIATE_TEST_SUITE_P(Unary, OperatorSuite, testing::ValuesIn(cases()), case_name);

/// Where a pack of xsimd 8 is off although PyTorch's value is right. Without packs there is no difference.
std::vector<Difference> limits_of_packs() {
  const auto above = [](double limit) {
    return [=](int, const std::vector<double>& x) { return std::abs(x[0]) > limit; };
  };
  const auto tiny = [](int operand, const std::vector<double>& x) {
    return operand < 0 && x[0] > 0 && x[0] < std::numeric_limits<double>::min();
  };
  const double nan = std::nan("");
  return {
      {"exp", "overflows from 88.38 (709.44 in double) instead of 88.72 (709.78)",
       [](int, const std::vector<double>& x) { return x[0] > 88; }, HUGE_VAL, false},
      {"exp", "results that would be denormal, or nearly, are 0",
       [](int, const std::vector<double>& x) { return x[0] < -87; }, 0, false},
      {"log", "denormal doubles lose their scale", tiny, -746.51951346306112, false},
      {"log", "denormal doubles lose their scale", tiny, -745.95989767512572, false},
      {"erf", "the square of huge doubles overflows", above(1e150), nan, false},
      {"gelu", "as erf, which it is made of", above(1e150), nan, false},
  };
}

TEST(Unary, GivesWhatPyTorchDoesAtEdgePoints) {
  auto differences = limits_of_packs();
  differences.push_back(
      {"abs", "there is no derivative at NaN, where PyTorch has 0",
       [](int operand, const std::vector<double>& x) { return operand == 0 && std::isnan(x[0]); },
       std::nan("")});
  // PyTorch multiplies the infinity with the density, which is 0 there, and gets NaN.
  for (const double sign : {1.0, -1.0})
    differences.push_back(
        {"gelu", "the limits of the derivative at the infinities",
         [=](int operand, const std::vector<double>& x) { return operand == 0 && x[0] == sign * HUGE_VAL; },
         sign > 0 ? 1.0 : 0.0});
  const auto programs_by_name = programs_of(cases());
  for (const auto& fixture : read_fixtures("unary")) {
    // 1 - tanh² and 1 + erf cancel; erf of packs of double is within 12 ulps.
    const bool cancels = fixture.name == "tanh" || fixture.name == "gelu";
    const Tolerance tolerance{.ulps = fixture.name == "erf" || fixture.name == "gelu" ? 16.0 : 4.0,
                              .floor = cancels ? 1.0 : 0.0};
    EXPECT_TRUE(none(check_fixture(fixture, programs_by_name.at(fixture.name), tolerance, differences)));
  }
}

TEST(Unary, KeepsTheSignOfZeroAsPyTorchDoes) {
  const auto negative = Double::full({33}, -0.0);
  const auto signs = [](const Double& y) {
    for (const double value : y.span())
      if (value != 0) return std::string("not zero");
    return std::string(std::signbit(y.data()[0]) ? "-" : "+") + (std::signbit(y.data()[32]) ? "-" : "+");
  };
  EXPECT_EQ(signs(abs(negative)), "++");
  EXPECT_EQ(signs(sqrt(negative)), "--");
  EXPECT_EQ(signs(sin(negative)), "--");
  EXPECT_EQ(signs(square(negative)), "++");
}

}  // namespace
}  // namespace taut::test
