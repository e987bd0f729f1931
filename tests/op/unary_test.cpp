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

/// x Φ(x), or an approximation, whose two factors nearly cancel below 0: the rounding errors are those of
/// x / 2.
Case gelu_case(std::string name, Programs call, double (*f)(double)) {
  Case c = unary(std::move(name), std::move(call), nullptr, {}, 16);
  c.oracle = [f](const std::vector<Reference>& operands) {
    Reference result{operands[0].shape, {}};
    for (const double x : operands[0].values) {
      result.values.push_back(f(x));
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
      gelu_case("gelu", programs<1>(TAUT_FUNCTION(gelu)),
                [](double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; }),
      gelu_case("gelu_tanh", programs<1>(TAUT_FUNCTION(gelu_tanh)), gelu_tanh_by_definition),
  };
}

INSTANTIATE_TEST_SUITE_P(Unary, OperatorSuite, testing::ValuesIn(cases()), case_name);

using Point = Difference::Point;

/// Where packs of xsimd 8 are off and PyTorch is right. Without packs there is no difference.
std::vector<Difference> limits_of_packs() {
  const auto denormal = [](const Point& at) {
    return at.operand < 0 && at.x[0] > 0 && at.x[0] < std::numeric_limits<double>::min();
  };
  const auto roughly = [](const Point& at) { return std::abs(at.got / at.expected - 1) < 0.06; };
  const auto huge = [](const Point& at) { return std::abs(at.x[0]) > 1e150; };
  const auto near_overflow = [](const Point& at) { return at.x[0] > 88; };
  const auto near_underflow = [](const Point& at) { return at.x[0] < -87; };
  const auto not_a_number = gives(std::nan(""));
  return {
      {"exp", "overflows from 88.38 (709.44 in double) instead of 88.72 (709.78)", near_overflow,
       gives(HUGE_VAL), false},
      {"exp", "gives 0 below -87.34 (-708.4 in double), in place of denormal numbers", near_underflow,
       gives(0), false},
      {"log", "loses the scale of denormal doubles", denormal, roughly, false},
      {"erf", "the square of huge doubles overflows", huge, not_a_number, false},
      {"gelu", "as erf, which it is made of", huge, not_a_number, false},
  };
}

std::vector<Difference> differences() {
  auto all = limits_of_packs();
  const auto derivative_at_nan = [](const Point& at) { return at.operand == 0 && std::isnan(at.x[0]); };
  const auto derivative_at_infinity = [](const Point& at) { return at.operand == 0 && std::isinf(at.x[0]); };
  all.push_back({"abs", "there is no derivative at NaN, where PyTorch gives 0", derivative_at_nan,
                 gives(std::nan(""))});
  all.push_back({"gelu", "the limits of the derivative, where PyTorch multiplies infinity with 0",
                 derivative_at_infinity, [](const Point& at) { return at.got == (at.x[0] > 0 ? 1 : 0); }});
  return all;
}

TEST(Unary, GivesWhatPyTorchDoesAtEdgePoints) {
  const auto programs_by_name = programs_of(cases());
  for (const auto& fixture : read_fixtures("unary")) {
    // 1 - tanh², 1 + tanh and 1 + erf cancel; erf of packs of double is within 12 ulps.
    const bool cancels = fixture.name == "tanh" || fixture.name == "gelu" || fixture.name == "gelu_tanh";
    const Tolerance tolerance{.ulps = fixture.name == "erf" || fixture.name == "gelu" ? 16.0 : 4.0,
                              .floor = cancels ? 1.0 : 0.0};
    EXPECT_TRUE(none(check_fixture(fixture, programs_by_name.at(fixture.name), tolerance, differences())));
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
