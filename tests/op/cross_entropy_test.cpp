// Cross-entropy, and the operators that its derivatives are made of, through the suite.

#include <taut/op/cross_entropy.hpp>

#include <cmath>
#include <limits>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// The label of a row: all classes come up, in no simple order.
std::int64_t label(std::int64_t row, std::int64_t classes) { return (row * row * 5 + row * 3 + 1) % classes; }

/// Labels for the rows of a tensor of type T, as many as `rows`.
template <class T> typename T::Index labels(std::int64_t rows, std::int64_t classes) {
  if constexpr (std::same_as<T, ShapeTensor>) {
    return ShapeTensor(Shape{rows});
  } else {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < rows; ++i) values.push_back(classes > 0 ? label(i, classes) : 0);
    return T::Index::from_host(values, {rows});
  }
}

/// Applies f(x, labels) with a label for each row of x.
template <class F> auto with_labels(const F& f) {
  return [f](auto&& x) {
    using T = std::remove_cvref_t<decltype(x)>;
    const Shape shape = x.shape();
    const std::int64_t rows = shape.rank() > 0 ? shape[0] : 1;
    return f(x, labels<T>(rows, shape.rank() == 2 ? shape[1] : 5));
  };
}

double log_softmax_at(const Reference& x, std::int64_t row, std::int64_t column) {
  double total = 0;
  for (std::int64_t j = 0; j < x.shape[1]; ++j) total += std::exp(x.values[flat(x.shape, {row, j})]);
  return x.values[flat(x.shape, {row, column})] - std::log(total);
}

Reference mean_loss(const std::vector<Reference>& operands) {
  const Reference& x = operands[0];
  double total = 0;
  for (std::int64_t i = 0; i < x.shape[0]; ++i) total -= log_softmax_at(x, i, label(i, x.shape[1]));
  return {{}, {total / static_cast<double>(x.shape[0])}, {4}};
}

Case cross_entropy_case() {
  return {.name = "cross_entropy",
          .call = programs<1>(with_labels([](const auto& x, const auto& y) { return cross_entropy(x, y); })),
          .oracle = mean_loss,
          .operands = {{.fill = between(-3, 3)}},
          .shapes = {{{1, 2}}, {{7, 3}}, {{3, 31}}, {{5, 33}}, {{32, 10}}, {{2, 1025}}, {{700, 65}}},
          .forward_shapes = {{{4, 1}}},
          .rejected = {{{3}}, {{2, 3, 4}}},
          .ulps = 4};
}

Case pick_case() {
  return {.name = "pick",
          .call = programs<1>(with_labels([](const auto& x, const auto& y) { return pick(x, y); })),
          .oracle =
              [](const std::vector<Reference>& operands) {
                const Reference& x = operands[0];
                Reference result{{x.shape[0]}, {}};
                for (std::int64_t i = 0; i < x.shape[0]; ++i)
                  result.values.push_back(x.values[flat(x.shape, {i, label(i, x.shape[1])})]);
                return result;
              },
          .operands = {{.curved = false}},
          .shapes = {{{1, 2}}, {{7, 3}}, {{3, 31}}, {{33, 5}}, {{0, 3}}},
          .rejected = {{{3}}, {{2, 3, 4}}},
          .ulps = 0};
}

Case unpick_case() {
  return {.name = "unpick",
          .call = programs<1>(
              with_labels([](const auto& x, const auto& y) { return eval(op::Unpick{5}, x, y); })),
          .oracle =
              [](const std::vector<Reference>& operands) {
                const Reference& x = operands[0];
                Reference result{{x.shape[0], 5}, std::vector<double>(5 * x.values.size(), 0)};
                for (std::int64_t i = 0; i < x.shape[0]; ++i)
                  result.values[flat(result.shape, {i, label(i, 5)})] = x.values[static_cast<std::size_t>(i)];
                return result;
              },
          .operands = {{.curved = false}},
          .shapes = {{{1}}, {{7}}, {{33}}, {{0}}},
          .rejected = {{{}}, {{2, 5}}},
          .ulps = 0};
}

/// The gradient of the loss as an operator of its own: it is what `Grad` of `cross_entropy` runs, and is
/// differentiated when second derivatives are.
Case gradient_case() {
  return {.name = "cross_entropy_gradient",
          .call = programs<2>([](auto&& g, auto&& x) {
            using T = std::remove_cvref_t<decltype(x)>;
            const Shape shape = x.shape();
            return eval(op::CrossEntropyGradient{}, g, x,
                        labels<T>(shape.rank() > 0 ? shape[0] : 1, shape.rank() == 2 ? shape[1] : 5));
          }),
          .oracle =
              [](const std::vector<Reference>& operands) {
                const Reference &g = operands[0], &x = operands[1];
                const double scale = g.values[0] / static_cast<double>(x.shape[0]);
                Reference result{x.shape, {}};
                for_each_index(x.shape, [&](const Index& index) {
                  const double s = std::exp(log_softmax_at(x, index[0], index[1]));
                  const double hot = label(index[0], x.shape[1]) == index[1] ? 1 : 0;
                  result.values.push_back(scale * (s - hot));
                  result.scale.push_back(std::abs(scale));
                });
                return result;
              },
          .operands = {{.fill = away_from_zero(0.5)}, {.fill = between(-3, 3)}},
          .shapes = {{{}, {7, 3}}, {{1}, {3, 31}}, {{1, 1}, {5, 4}}, {{}, {33, 10}}},
          .forward_shapes = {{{}, {0, 3}}, {{}, {700, 65}}},
          .rejected = {{{2}, {3, 4}}},
          .ulps = 8};
}

std::vector<Case> cases() { return {cross_entropy_case(), pick_case(), unpick_case(), gradient_case()}; }

INSTANTIATE_TEST_SUITE_P(CrossEntropy, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(CrossEntropy, RejectsLabelsThatAreNoClasses) {
  const auto x = Float::ones({2, 3});
  for (const std::int64_t wrong : {-1, 3}) {
    const auto y = Float::Index::from_host(std::array<std::int64_t, 2>{0, wrong}, {2});
    const std::string expected =
        "label " + std::to_string(wrong) + " at position 1 is not one of the classes 0 to 2";
    EXPECT_EQ(message_of([&] { cross_entropy(x, y); }), "cross_entropy: " + expected);
    EXPECT_EQ(message_of([&] { pick(x, y); }), "pick: " + expected);
    EXPECT_EQ(message_of([&] { eval(op::Unpick{3}, Float::ones({2}), y); }), "unpick: " + expected);
  }
}

TEST(CrossEntropy, RejectsAnotherNumberOfLabelsThanRows) {
  const auto text = message_of([] { cross_entropy(Float::ones({2, 3}), Float::Index::zeros({3})); });
  EXPECT_EQ(text, "cross_entropy: needs one label for each row of the logits: [2, 3] x [3]");
  EXPECT_NE(message_of([] { pick(Float::ones({2, 3}), Float::Index::zeros({2, 1})); }), "no error");
}

TEST(CrossEntropy, IsNaNOfNoRows) {
  EXPECT_TRUE(std::isnan(cross_entropy(Double::ones({0, 3}), Double::Index::zeros({0})).item()));
}

TEST(CrossEntropy, KeepsTheDigitsOfLossesOfLargeLogits) {
  // All logits shifted alike leave the loss as it is: log_softmax subtracts the largest first.
  const auto y = Float::Index::from_host(std::array<std::int64_t, 1>{0}, {1});
  for (const float shift : {0.f, 1024.f, 65536.f}) {
    const auto x = Float::from_host(std::array<float, 3>{shift + 1, shift, shift + 2}, {1, 3});
    EXPECT_FLOAT_EQ(cross_entropy(x, y).item(), 1.4076059f) << "shifted by " << shift;
  }
}

TEST(CrossEntropy, GivesWhatPyTorchDoesAtEdgePoints) {
  for (const auto& fixture : read_fixtures("cross_entropy")) {
    const Programs call = programs<1>([labels = fixture.labels](auto&& x) {
      using T = std::remove_cvref_t<decltype(x)>;
      const Shape shape{static_cast<std::int64_t>(labels.size())};
      if constexpr (std::same_as<T, ShapeTensor>)
        return cross_entropy(x, ShapeTensor(shape));
      else
        return cross_entropy(x, T::Index::from_host(labels, shape));
    });
    EXPECT_TRUE(none(check_fixture(fixture, call, {})));
  }
}

TEST(CrossEntropy, SmoothsLabels) {
  const std::vector<double> x{0.5, -1, 2, 0, 1, -0.5};
  const auto labels = Double::Index::from_host(std::vector<std::int64_t>{2, 0}, {2});
  const auto logits = Grad<Double>(Double::from_host(x, {2, 3})).track();
  Tape<Double> tape;
  const auto loss = cross_entropy(logits, labels, 0.1);
  tape.backward(loss);
  double expected = 0;
  std::vector<double> gradient;
  for (const std::size_t row : {0u, 1u}) {
    double total = 0;
    for (std::size_t k = 0; k < 3; ++k) total += std::exp(x[3 * row + k]);
    for (std::size_t k = 0; k < 3; ++k) {
      const bool right = (row == 0 && k == 2) || (row == 1 && k == 0);
      const double wanted = 0.1 / 3 + (right ? 0.9 : 0);
      expected -= wanted * (x[3 * row + k] - std::log(total)) / 2;
      gradient.push_back((std::exp(x[3 * row + k]) / total - wanted) / 2);
    }
  }
  EXPECT_NEAR(loss.item(), expected, 1e-12);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    EXPECT_NEAR(logits.grad().to_host()[i], gradient[i], 1e-12);
  EXPECT_EQ(cross_entropy(logits, labels, 0).item(), cross_entropy(logits, labels).item());
  EXPECT_THROW(cross_entropy(logits, labels, 1.5), Error);
  EXPECT_THROW(cross_entropy(logits, labels, std::nan("")), Error);
}

}  // namespace
}  // namespace taut::test
