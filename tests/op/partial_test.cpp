// Derivatives of elementwise operators as operators: their values, and which operands they need.

#include <taut/op/partial.hpp>

#include <taut/op/arithmetic.hpp>
#include <taut/op/compare.hpp>
#include <taut/op/unary.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace taut::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// What is saved for the gradients: nothing for sums, the other operand for products.
static_assert(plan_partials<2>(op::Add{})[0].identity && plan_partials<2>(op::Add{})[1].identity);
static_assert(plan_partials<2>(op::Sub{})[0].identity && !plan_partials<2>(op::Sub{})[1].identity);
static_assert(plan_partials<2>(op::Sub{})[1].inputs == 0);
static_assert(plan_partials<2>(op::Mul{})[0].inputs == 0b10 && plan_partials<2>(op::Mul{})[1].inputs == 0b01);
static_assert(plan_partials<2>(op::Div{})[0].inputs == 0b10 && plan_partials<2>(op::Div{})[1].inputs == 0b11);
static_assert(plan_partials<2>(op::Maximum{})[0].inputs == 0b11);
static_assert(plan_partials<2>(op::Lt{})[0].zero && plan_partials<2>(op::Lt{})[1].zero);
static_assert(plan_partials<3>(op::Where{})[0].zero && plan_partials<3>(op::Where{})[1].inputs == 0b001);
static_assert(plan_partials<3>(op::Where{})[2].inputs == 0b001);
static_assert(plan_partials<1>(op::Square{})[0].inputs == 1 && !plan_partials<1>(op::Square{})[0].zero);
static_assert(plan_partials<1>(op::Bind<op::Add, 1>{{}, {}, 3.0})[0].identity);
static_assert(plan_partials<1>(op::Bind<op::Mul, 0>{{}, {}, 3.0})[0].inputs == 0);
static_assert(HasOutputGradient<op::Tanh> && !HasOutputGradient<op::Square>);

// Derivatives of derivatives: d²(ab)/da² = 0, d²(ab)/da db = g.
constexpr op::Partial<op::Mul, 0> product_by_a{};
static_assert(plan_partials<3>(product_by_a)[1].zero && !plan_partials<3>(product_by_a)[2].zero);

template <class F> using First = op::Partial<F, 0>;
template <class F> using Second = op::Partial<op::Partial<F, 0>, 1>;

TEST(Partial, IsTheDerivativeTimesTheIncomingGradient) {
  const double g = -1.75, x = 0.6, y = 1.3;
  EXPECT_DOUBLE_EQ(First<op::Exp>{}(g, x), g * std::exp(x));
  EXPECT_DOUBLE_EQ(First<op::Log>{}(g, x), g / x);
  EXPECT_DOUBLE_EQ(First<op::Tanh>{}(g, x), g / (std::cosh(x) * std::cosh(x)));
  EXPECT_DOUBLE_EQ((op::Partial<op::Div, 1>{}(g, x, y)), -g * x / (y * y));
  EXPECT_DOUBLE_EQ((op::Partial<op::Pow, 0>{}(g, x, y)), g * y * std::pow(x, y - 1));
  EXPECT_DOUBLE_EQ((op::Partial<op::Pow, 1>{}(g, x, y)), g * std::pow(x, y) * std::log(x));
  EXPECT_DOUBLE_EQ((op::Partial<op::Bind<op::Sub, 0>, 0>{{}, {{}, {}, 4.0}}(g, x)), -g);
}

TEST(Partial, HasDerivativesOfItsOwn) {
  const double g = 0.5, x = 0.6;
  EXPECT_DOUBLE_EQ(Second<op::Sin>{}(1.0, g, x), -g * std::sin(x));
  EXPECT_DOUBLE_EQ(Second<op::Log>{}(1.0, g, x), -g / (x * x));
  EXPECT_DOUBLE_EQ(Second<op::Erf>{}(1.0, g, x), -g * 4 * x / std::sqrt(std::acos(-1.0)) * std::exp(-x * x));
  EXPECT_DOUBLE_EQ((op::Partial<Second<op::Exp>, 2>{}(1.0, 1.0, g, x)), g * std::exp(x)) << "the third";
}

TEST(Partial, FromTheOutputAgreesWithTheOneFromTheInput) {
  const auto agrees = []<class F>(F f, double x) {
    const double g = 1.5;
    EXPECT_NEAR(op::PartialFromOutput<F>{}(g, f(x)), (op::Partial<F, 0>{}(g, x)), 1e-14)
        << F::name << ' ' << x;
  };
  for (const double x : {-2.5, -0.3, 0.4, 3.0}) {
    agrees(op::Exp{}, x);
    agrees(op::Tanh{}, x);
    agrees(op::Sigmoid{}, x);
    agrees(op::Relu{}, x);
    agrees(op::Sqrt{}, std::abs(x));
  }
}

TEST(Partial, OfWhatDoesNotDependOnTheOperandIsZeroWhateverItsSize) {
  EXPECT_EQ((op::Partial<op::Mul, 0>{}(0.0, 1.0, inf)), 0) << "no gradient arrives";
  EXPECT_EQ((op::Partial<op::Where, 1>{}(1.0, 0.0, inf, 2.0)), 0) << "not selected";
  EXPECT_EQ((op::Partial<op::Where, 2>{}(std::nan(""), 1.0, inf, inf)), 0) << "not selected";
  EXPECT_EQ((op::Partial<op::Pow, 0>{}(1.0, 0.0, 0.0)), 0) << "0⁰ is 1 around exponents of 0";
}

TEST(Partial, SharesTheGradientOfATie) {
  EXPECT_EQ((op::Partial<op::Maximum, 0>{}(3.0, 2.0, 2.0)), 1.5);
  EXPECT_EQ((op::Partial<op::Minimum, 1>{}(3.0, 2.0, 2.0)), 1.5);
  EXPECT_EQ((op::Partial<op::Relu, 0>{}(3.0, 0.0)), 0);
  EXPECT_EQ((op::Partial<op::Abs, 0>{}(3.0, 0.0)), 0);
}

}  // namespace
}  // namespace taut::test
