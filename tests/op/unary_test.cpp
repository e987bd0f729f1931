// The functions of one tensor through the suite, and their edge points.

#include <taut/op/unary.hpp>

#include <cmath>
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
  Case c = unary("gelu", programs<1>(TAUT_FUNCTION(gelu)), nullptr);
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
      unary("erf", programs<1>(TAUT_FUNCTION(erf)), [](double x) { return std::erf(x); }),
      unary("tanh", programs<1>(TAUT_FUNCTION(tanh)), [](double x) { return std::tanh(x); }),
      unary("sigmoid", programs<1>(TAUT_FUNCTION(sigmoid)), [](double x) { return 1 / (1 + std::exp(-x)); },
            {.fill = between(-4, 4)}),
      relu_case(),
      gelu_case(),
  };
}

INSTANTIATE_TEST_SUITE_P(Unary, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Unary, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("unary", programs_of(cases()), 4)));
}

}  // namespace
}  // namespace taut::test
