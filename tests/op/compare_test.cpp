// Comparisons and selection through the suite, and their edge points.

#include <taut/op/compare.hpp>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// A comparison of two operands that are equal in about a quarter of the places, by which nothing can be
/// differentiated.
Case comparison(std::string name, Programs call, bool (*f)(double, double), std::string error = {}) {
  const auto few_values = [](std::size_t n, Generator& random) {
    std::vector<double> values(n);
    for (double& value : values) value = static_cast<double>(random() % 4) / 2 - 1;
    return values;
  };
  const Operand operand{.fill = few_values, .differentiable = false};
  return {.name = std::move(name),
          .call = std::move(call),
          .oracle = elementwise([f](const std::vector<double>& x) { return f(x[0], x[1]) ? 1.0 : 0.0; }),
          .operands = {operand, operand},
          .shapes = binary_shapes(),
          .rejected = binary_rejected(),
          .ulps = 0,
          .reuses = true,
          .error = std::move(error)};
}

Case where_case() {
  Case c{.name = "where",
         .call = programs<3>(TAUT_FUNCTION(where)),
         .oracle = elementwise([](const std::vector<double>& x) { return x[0] != 0 ? x[1] : x[2]; }),
         .operands = {{.fill = bits(), .differentiable = false}, {.curved = false}, {.curved = false}},
         .shapes = {},
         .rejected = {{{2}, {2}, {3}}, {{2}, {3}, {2}}, {{4}, {2, 3}, {2, 3}}},
         .ulps = 0,
         .reuses = true};
  for (const Shape shape : {Shape{31}, {32}, {33}, {1023}, {threaded}})
    c.shapes.push_back({shape, shape, shape});
  c.shapes.insert(
      c.shapes.end(),
      {{{2, 3, 4}, {3, 4}, {4}}, {{0}, {0}, {1}}, {{7, 1}, {1, 9}, {}}, {{5, 4}, {5, 1}, {1, 4}}});
  // A condition, or a branch, that broadcasts to one element may leave the other branch without a gradient.
  c.forward_shapes = {{{}, {}, {}}, {{1}, {33}, {33}}, {{0, 3}, {0, 3}, {0, 3}}, {{}, {7}, {1, 7}}};
  return c;
}

std::vector<Case> cases() {
  return {
      comparison("eq", programs<2>(TAUT_FUNCTION(eq)), [](double a, double b) { return a == b; }),
      comparison("ne", programs<2>(TAUT_FUNCTION(ne)), [](double a, double b) { return a != b; }),
      comparison("lt", programs<2>(TAUT_FUNCTION(lt)), [](double a, double b) { return a < b; }),
      comparison("le", programs<2>(TAUT_FUNCTION(le)), [](double a, double b) { return a <= b; }),
      comparison(
          "gt", programs<2>(TAUT_FUNCTION(gt)), [](double a, double b) { return a > b; }, "lt"),
      comparison(
          "ge", programs<2>(TAUT_FUNCTION(ge)), [](double a, double b) { return a >= b; }, "le"),
      where_case(),
  };
}

INSTANTIATE_TEST_SUITE_P(Compare, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Compare, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("compare", programs_of(cases()), {.ulps = 0})));
}

}  // namespace
}  // namespace taut::test
