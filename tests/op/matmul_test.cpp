// Matrix products through the suite.

#include <taut/op/matmul.hpp>

#include <cmath>
#include <limits>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// Σₖ a[.., i, k] b[.., k, j], with either operand's last axes exchanged if it is given transposed.
Oracle product(op::Matmul options) {
  return [=](const std::vector<Reference>& operands) {
    const Reference &a = operands[0], &b = operands[1];
    const bool ta = options.transpose_a, tb = options.transpose_b;
    const int rank = std::max(a.shape.rank(), b.shape.rank());
    Shape shape;
    for (int axis = -rank; axis < -2; ++axis) {
      const std::int64_t in_a = -axis <= a.shape.rank() ? a.shape[axis] : 1;
      const std::int64_t in_b = -axis <= b.shape.rank() ? b.shape[axis] : 1;
      shape.push_back(in_a == 1 ? in_b : in_a);
    }
    shape.push_back(a.shape[ta ? -1 : -2]);
    shape.push_back(b.shape[tb ? -2 : -1]);
    Reference result{shape, {}};
    // Along k the operands advance by one element or by one row.
    const std::int64_t step_a = ta ? a.shape[-1] : 1, step_b = tb ? 1 : b.shape[-1];
    for_each_index(shape, [&](const Index& index) {
      const auto last = index.size() - 1;
      Index at_a = index, at_b = index;
      at_a[last - 1] = ta ? 0 : index[last - 1], at_a[last] = ta ? index[last - 1] : 0;
      at_b[last - 1] = tb ? index[last] : 0, at_b[last] = tb ? 0 : index[last];
      auto i = flat_broadcast(a.shape, at_a), j = flat_broadcast(b.shape, at_b);
      double total = 0, scale = 0;
      for (std::int64_t k = 0; k < a.shape[ta ? -2 : -1]; ++k) {
        const double term = a.values[i] * b.values[j];
        total += term, scale += std::abs(term);
        i += static_cast<std::size_t>(step_a), j += static_cast<std::size_t>(step_b);
      }
      result.values.push_back(total);
      result.scale.push_back(scale);
    });
    return result;
  };
}

Shape transposed(Shape shape) {
  if (shape.rank() >= 2) std::swap(shape[-1], shape[-2]);
  return shape;
}

/// The same products with each choice of transposes.
Case matmul_case(std::string name, Programs call, op::Matmul options) {
  Case c{.name = std::move(name),
         .call = std::move(call),
         .oracle = product(options),
         .operands = {{}, {}},
         .shapes = {},
         .ulps = 4,
         .gradient_ulps = 32,
         .error = "matmul"};
  c.shapes = {{{2, 3}, {3, 4}},
              {{1, 1}, {1, 1}},
              {{1, 7}, {7, 1}},
              {{7, 1}, {1, 5}},
              {{5, 31}, {31, 2}},
              {{3, 33}, {33, 3}},
              {{17, 65}, {65, 33}},
              {{2, 3, 4}, {2, 4, 3}},
              {{2, 3, 4}, {4, 3}},
              {{3, 4}, {2, 4, 3}},
              {{2, 1, 3, 2}, {1, 3, 2, 4}},
              {{2, 3, 3, 2}, {3, 2, 2}},
              {{1, 3, 2}, {2, 3}},
              {{1, 2, 3}, {4, 3, 2}},
              {{2, 1, 2, 1, 2, 3}, {2, 1, 2, 3, 2}},
              // Empty: no rows, no columns, no batch, and sums of no terms, which are 0.
              {{0, 3}, {3, 2}},
              {{2, 3}, {3, 0}},
              {{0, 2, 3}, {3, 4}},
              {{2, 2, 3}, {2, 3, 0}}};
  c.forward_shapes = {{{2, 0}, {0, 3}}, {{2, 3, 0}, {0, 4}}, {{2, 3, 0}, {2, 0, 4}}, {{130, 67}, {67, 129}}};
  c.rejected = {{{2, 3}, {4, 2}}, {{3}, {3, 2}}, {{2, 3}, {3}}, {{2, 5, 3}, {3, 3, 5}}, {{}, {2, 2}}};
  for (auto* list : {&c.shapes, &c.forward_shapes, &c.rejected})
    for (auto& shapes : *list) {
      if (options.transpose_a) shapes[0] = transposed(shapes[0]);
      if (options.transpose_b) shapes[1] = transposed(shapes[1]);
    }
  return c;
}

/// x Wᵀ + b
Reference linear_by_definition(const std::vector<Reference>& operands) {
  const Reference &x = operands[0], &weight = operands[1], &bias = operands[2];
  Reference result{x.shape, {}};
  result.shape[-1] = weight.shape[0];
  const auto inputs = static_cast<std::size_t>(weight.shape[1]);
  for_each_index(result.shape, [&](const Index& index) {
    const auto outputs = static_cast<std::size_t>(weight.shape[0]),
               j = static_cast<std::size_t>(index.back());
    const std::size_t row = result.values.size() / outputs;
    double total = bias.values[j], scale = std::abs(total);
    for (std::size_t k = 0; k < inputs; ++k) {
      const double term = x.values[row * inputs + k] * weight.values[j * inputs + k];
      total += term, scale += std::abs(term);
    }
    result.values.push_back(total);
    result.scale.push_back(scale);
  });
  return result;
}

Case linear_case() {
  return {.name = "linear",
          .call = programs<3>(TAUT_FUNCTION(linear)),
          .oracle = linear_by_definition,
          .operands = {{}, {}, {.curved = false}},
          .shapes = {{{2, 3}, {4, 3}, {4}},
                     {{1, 1}, {1, 1}, {1}},
                     {{5}, {3, 5}, {3}},
                     {{2, 3, 5}, {4, 5}, {4}},
                     {{7, 31}, {2, 31}, {2}},
                     {{2, 1, 2, 3}, {2, 3}, {2}},
                     {{33, 65}, {17, 65}, {17}},
                     {{0, 3}, {2, 3}, {2}}},
          .forward_shapes = {{{3, 0}, {2, 0}, {2}},
                             {{2, 3, 0}, {2, 0}, {2}},
                             {{2, 3}, {0, 3}, {0}},
                             {{64, 784}, {128, 784}, {128}}},
          .rejected = {{{2, 3}, {4, 2}, {4}}, {{2, 3}, {3}, {4}}},
          .ulps = 4,
          .gradient_ulps = 32};
}

/// Larger than any sum of products there, so that ReLU's kink is far; every other element is cut off.
std::vector<double> far_from_zero(std::size_t n, Generator& random) {
  std::vector<double> values = between(20, 30)(n, random);
  for (std::size_t i = 1; i < n; i += 2) values[i] = -values[i];
  return values;
}

/// A linear layer and a function of its elements.
Case linear_then_case(std::string name, Programs call, double (*f)(double), Operand bias) {
  Case c = linear_case();
  c.name = std::move(name);
  c.call = std::move(call);
  c.oracle = [f](const std::vector<Reference>& operands) {
    Reference result = linear_by_definition(operands);
    for (double& value : result.values) value = f(value);
    return result;
  };
  c.operands = {{.fill = between(-1, 1)}, {.fill = between(-0.1, 0.1)}, std::move(bias)};
  c.ulps = 16;
  c.gradient_ulps = 64;
  c.error = "linear";
  return c;
}

constexpr op::Matmul a_transposed{.transpose_a = true}, b_transposed{.transpose_b = true},
    both_transposed{.transpose_a = true, .transpose_b = true};

std::vector<Case> cases() {
  return {
      matmul_case("matmul", programs<2>(TAUT_FUNCTION(matmul)), {}),
      matmul_case("matmul_a_transposed",
                  programs<2>([](auto&& a, auto&& b) { return matmul(a, b, a_transposed); }), a_transposed),
      matmul_case("matmul_b_transposed",
                  programs<2>([](auto&& a, auto&& b) { return matmul(a, b, b_transposed); }), b_transposed),
      matmul_case("matmul_both_transposed",
                  programs<2>([](auto&& a, auto&& b) { return matmul(a, b, both_transposed); }),
                  both_transposed),
      linear_case(),
      linear_then_case("linear_relu", programs<3>(TAUT_FUNCTION(linear_relu)),
                       [](double x) { return x > 0 ? x : 0; }, {.fill = far_from_zero, .curved = false}),
      linear_then_case("linear_gelu_tanh", programs<3>(TAUT_FUNCTION(linear_gelu_tanh)),
                       gelu_tanh_by_definition, {.fill = between(-2, 2)}),
  };
}

INSTANTIATE_TEST_SUITE_P(Matmul, OperatorSuite, testing::ValuesIn(cases()), case_name);

/// The gradients of sum(op(a, b…)), which are the same in all places; with extents of 0 they are 0, or empty.
template <class F, class... Shapes>
std::vector<Double> gradients_of_ones(const F& f, const Shapes&... shapes) {
  std::vector<Grad<Double>> leaves{Grad<Double>(Double::ones(shapes)).track()...};
  Tape<Double> tape;
  const auto y = [&]<std::size_t... I>(std::index_sequence<I...>) { return f(leaves[I]...); }
  (std::index_sequence_for<Shapes...>{});
  tape.backward(y, Double::ones(y.shape()));
  std::vector<Double> gradients;
  for (const auto& leaf : leaves) gradients.push_back(leaf.grad());
  return gradients;
}

TEST(Matmul, HasEmptyGradientsWhereTheInnerDimensionIsEmpty) {
  const auto product = TAUT_FUNCTION(matmul);
  const auto layer = TAUT_FUNCTION(linear);
  for (const auto& [a, b] :
       {std::pair<Shape, Shape>{{2, 0}, {0, 3}}, {{2, 3, 0}, {0, 4}}, {{2, 3, 0}, {2, 0, 4}}}) {
    const auto gradients = gradients_of_ones(product, a, b);
    EXPECT_EQ(gradients[0].shape(), a);
    EXPECT_EQ(gradients[1].shape(), b);
  }
  for (const auto& x : {Shape{3, 0}, {2, 3, 0}}) {
    const auto gradients = gradients_of_ones(layer, x, Shape{2, 0}, Shape{2});
    EXPECT_EQ(gradients[0].shape(), x);
    EXPECT_EQ(gradients[1].shape(), (Shape{2, 0}));
    EXPECT_EQ(gradients[2].to_host(),
              std::vector<double>(2, static_cast<double>(x.size() == 0 && x.rank() == 2 ? 3 : 6)));
  }
  for (const auto& x : {Shape{3, 2}, {2, 3, 2}}) {
    const auto gradients = gradients_of_ones(layer, x, Shape{0, 2}, Shape{0});
    EXPECT_EQ(gradients[0].to_host(), std::vector<double>(static_cast<std::size_t>(x.size()), 0.0));
    EXPECT_EQ(gradients[1].shape(), (Shape{0, 2}));
    EXPECT_EQ(gradients[2].shape(), (Shape{0}));
  }
}

TEST(Matmul, PropagatesNaNAndInfinityThroughProductsWithZero) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double special : {inf, -inf, std::nan("")}) {
    const auto y = matmul(Double::full({1, 1}, special), Double::zeros({1, 2})).to_host();
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << special;
  }
}

TEST(Linear, RejectsABiasOfAnotherLength) {
  try {
    linear(Float::ones({2, 3}), Float::ones({4, 3}), Float::ones({5}));
    ADD_FAILURE() << "no error";
  } catch (const ShapeError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("linear: ", 0), 0u) << text;
    EXPECT_NE(text.find("[5]"), std::string::npos) << text;
    EXPECT_NE(text.find("[4, 3]"), std::string::npos) << text;
  }
}

TEST(Matmul, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("matmul", programs_of(cases()), {.ulps = 2})));
}

}  // namespace
}  // namespace taut::test
