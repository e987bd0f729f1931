// What `eval` does with operators in general: whose meaning is taken, shapes, composite operators.

#include <taut/op/operator.hpp>

#include <taut/cpu/cpu.hpp>
#include <taut/interpret/grad.hpp>
#include <taut/interpret/shape_tensor.hpp>

#include <gtest/gtest.h>

#include <string>

#include "suite.hpp"

namespace taut::test {

/// An operator that is only a composition of others: x + x y.
struct AddProduct {
  static constexpr std::string_view name = "add_product";
  constexpr Shape shape(const Shape& x, const Shape& y) const { return broadcast_shapes(name, x, y); }
  template <AnyTensor T> auto decompose(const T& x, const T& y) const { return x + x * y; }
};

/// A user's own elementwise operator with options.
struct Swish : op::Elementwise {
  static constexpr std::string_view name = "swish";
  float beta = 1;
  template <class S> constexpr S operator()(S x) const {
    using std::exp;
    return x / (S(1) + exp(S(-beta) * x));
  }
};

/// Three operands: a x + b.
struct Affine : op::Elementwise {
  static constexpr std::string_view name = "affine";
  template <class S> constexpr S operator()(S a, S x, S b) const { return a * x + b; }
};

namespace {

static_assert(depth<Double>() == 0 && depth<Grad<Double>>() == 1 && depth<Grad<Grad<Double>>>() == 2);
static_assert(std::same_as<OutermostOf<Double, const Grad<Double>&>, Grad<Double>>);
static_assert(std::same_as<OutermostOf<Grad<Double>&&, Double&>, Grad<Double>>);
static_assert(std::same_as<OutermostOf<Grad<Double>, Grad<Grad<Double>>, Double>, Grad<Grad<Double>>>);
static_assert(AnyTensor<Double&> && AnyTensor<const Grad<Float>&> && AnyTensor<ShapeTensor>);
static_assert(!AnyTensor<double> && !AnyTensor<Shape>);
static_assert(ElementwiseOp<op::Add> && ElementwiseOp<Swish> && !ElementwiseOp<op::Sum>);
static_assert(Decomposable<AddProduct, Double, Double> && !Decomposable<op::Add, Double, Double>);
static_assert(infer_shape(op::Add{}, Shape{2, 1}, Shape{3}) == Shape{2, 3});
static_assert(infer_shape(op::Sum{.axes = {0}}, Shape{2, 3}) == Shape{3});
static_assert(eval(AddProduct{}, ShapeTensor{{2, 1}}, ShapeTensor{{3}}).shape() == Shape{2, 3});
static_assert(map(Affine{}, ShapeTensor{{2, 1}}, ShapeTensor{{3}}, ShapeTensor{}).shape() == Shape{2, 3});
static_assert(Needs<2>{2}[1] && !Needs<2>{2}[0]);

std::vector<Case> cases() {
  return {
      {.name = "swish",
       .call = programs<1>([](auto&& x) {
         Swish swish;
         swish.beta = 1.5f;
         return map(swish, std::forward<decltype(x)>(x));
       }),
       .oracle = elementwise([](const std::vector<double>& x) { return x[0] / (1 + std::exp(-1.5 * x[0])); }),
       .operands = {{}},
       .shapes = unary_shapes(),
       .ulps = 8,
       .reuses = true},
      {.name = "affine",
       .call = programs<3>([](auto&&... xs) { return map(Affine{}, std::forward<decltype(xs)>(xs)...); }),
       .oracle =
           [](const std::vector<Reference>& xs) {
             Reference result =
                 elementwise([](const std::vector<double>& x) { return x[0] * x[1] + x[2]; })(xs);
             result.scale = elementwise([](const std::vector<double>& x) {
                              return std::abs(x[0] * x[1]) + std::abs(x[2]);
                            })(xs)
                                .values;
             return result;
           },
       .operands = {{}, {}, {.curved = false}},
       .shapes = {{{33}, {33}, {33}}, {{2, 1, 3}, {4, 1}, {}}, {{0, 2}, {2}, {1}}, {{5}, {}, {3, 1}}},
       .rejected = {{{2}, {2}, {3}}},
       .reuses = true},
      {.name = "add_product",
       .call = programs<2>([](auto&& x, auto&& y) { return eval(AddProduct{}, x, y); }),
       .oracle = elementwise([](const std::vector<double>& x) { return x[0] + x[0] * x[1]; }),
       .operands = {{}, {.fill = between(0.2, 2)}},
       .shapes = {{{33}, {33}}, {{2, 3}, {3}}, {{}, {7}}, {{0}, {1}}}}};
}

INSTANTIATE_TEST_SUITE_P(Operator, OperatorSuite, testing::ValuesIn(cases()), case_name);

/// A composition that would also compute something for operands that its rule refuses.
struct ScaleRows {
  static constexpr std::string_view name = "scale_rows";
  constexpr Shape shape(const Shape& x, const Shape& y) const {
    require(y == Shape{x[-1]}, "scale_rows: takes x [.., n] and y [n]", x, y);
    return x;
  }
  template <AnyTensor T> auto decompose(const T& x, const T& y) const { return x * y; }
};

TEST(Operator, ComposedOnesHoldOperandsToTheirOwnRuleEverywhere) {
  const auto x = Double::ones({2, 3}), column = Double::ones({2, 1});
  EXPECT_THROW(eval(ScaleRows{}, x, column), ShapeError);
  EXPECT_THROW(eval(ScaleRows{}, ShapeTensor({2, 3}), ShapeTensor({2, 1})), ShapeError);
  EXPECT_THROW(eval(ScaleRows{}, Grad<Double>(x), Grad<Double>(column)), ShapeError);
  Tape<Double> tape;
  EXPECT_THROW(eval(ScaleRows{}, Grad<Double>(x).track(), Grad<Double>(column)), ShapeError);
}

TEST(Operator, MixesPlainOperandsAsConstants) {
  const auto plain = Double::full({3}, 2.0);
  const auto leaf = Grad<Double>(Double::full({3}, 5.0)).track();
  Tape<Double> tape;
  const auto y = sum(plain * leaf + leaf / plain);
  static_assert(std::same_as<decltype(y), const Grad<Double>>);
  tape.backward(y);
  EXPECT_EQ(leaf.grad().to_host(), std::vector<double>(3, 2.5));
}

}  // namespace
}  // namespace taut::test
