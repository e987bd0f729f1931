// Batch normalisation, alone and fused, through the suite; group and instance normalisation.

#include <taut/op/batch_norm.hpp>

#include <cmath>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

std::size_t channel_of(const Shape& x, std::size_t i) {
  std::size_t inner = 1;
  for (int axis = 2; axis < x.rank(); ++axis) inner *= static_cast<std::size_t>(x[axis]);
  return i / inner % static_cast<std::size_t>(x[1]);
}

/// The mean and variance of each channel, by definition.
Reference statistics_of(const Reference& x) {
  const auto c = static_cast<std::size_t>(x.shape[1]);
  Reference result{{2, x.shape[1]}, std::vector<double>(2 * c), std::vector<double>(2 * c)};
  std::vector<double> count(c);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto channel = channel_of(x.shape, i);
    result.values[channel] += x.values[i], ++count[channel];
    result.scale[channel] += std::abs(x.values[i]);
  }
  for (std::size_t k = 0; k < c; ++k) result.values[k] /= count[k], result.scale[k] /= count[k];
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto channel = channel_of(x.shape, i);
    const double term = std::pow(x.values[i] - result.values[channel], 2) / count[channel];
    result.values[c + channel] += term, result.scale[c + channel] += term;
  }
  return result;
}

/// weight (x - mean) / √(variance + eps) + bias
Reference normalized(const std::vector<Reference>& operands, const Reference& statistics) {
  const Reference &x = operands[0], &weight = operands[1], &bias = operands[2];
  const auto c = static_cast<std::size_t>(x.shape[1]);
  Reference y = x;
  y.scale.assign(x.values.size(), 0.0);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto k = channel_of(x.shape, i);
    const double factor = weight.values[k] / std::sqrt(statistics.values[c + k] + 1e-5);
    y.values[i] = (x.values[i] - statistics.values[k]) * factor + bias.values[k];
    y.scale[i] = (std::abs(x.values[i]) + std::abs(statistics.values[k])) * std::abs(factor) +
                 std::abs(bias.values[k]);
  }
  return y;
}

Reference cut_off(Reference y) {
  for (double& value : y.values) value = std::max(value, 0.0);
  return y;
}

/// A program that takes the statistics of its first operand.
template <bool Relu>
constexpr auto batch_program = [](const auto& x, const auto& weight, const auto& bias) {
  return batch_norm(x, weight, bias, {.relu = Relu});
};
constexpr auto residual_program = [](const auto& x, const auto& weight, const auto& bias,
                                     const auto& residual) {
  return batch_norm_add_relu(x, weight, bias, residual, {.relu = true});
};
constexpr auto constant_program = [](const auto& x, const auto& weight, const auto& bias) {
  using S = Widened<std::remove_cvref_t<decltype(x)>>;
  using E = typename S::Element;
  const auto c = x.shape()[1];
  const auto statistics = concat(0, S::full({1, c}, E(0.25f)), S::full({1, c}, E(2.0f)));
  return batch_norm_by(statistics, x, weight, bias, {.relu = true});
};

std::vector<Case> cases() {
  const std::vector<Shapes> shapes{{{3, 2, 2, 3}, {2}, {2}},
                                   {{5, 2}, {2}, {2}},
                                   {{2, 3, 7}, {3}, {3}},
                                   {{2, 17, 3, 1}, {17}, {17}},
                                   {{2, 2, 5, 7}, {2}, {2}}};
  // Away from the ReLU's kink, which finite differences would step over: the signs of bias and weight decide.
  const std::vector<Operand> operands{
      {}, {.fill = between(0.1, 0.3)}, {.fill = away_from_zero(1.5, 2), .curved = false}};
  std::vector<Case> all{
      {.name = "batch_norm",
       .call = programs<3>(batch_program<false>),
       .oracle = [](const auto& xs) { return normalized(xs, statistics_of(xs[0])); },
       .operands = {{}, {}, {.curved = false}},
       .shapes = shapes,
       .forward_shapes = {{{4, 64, 16, 16}, {64}, {64}}},
       .rejected = {{{3, 2}, {3}, {2}}, {{3, 2}, {2}, {3}}},
       .ulps = 16,
       .gradient_ulps = 256},
      {.name = "batch_norm_relu",
       .call = programs<3>(batch_program<true>),
       .oracle = [](const auto& xs) { return cut_off(normalized(xs, statistics_of(xs[0]))); },
       .operands = operands,
       .shapes = shapes,
       .ulps = 16,
       .gradient_ulps = 256,
       .error = "batch_norm"},
      {.name = "batch_norm_add_relu",
       .call = programs<4>(residual_program),
       .oracle =
           [](const auto& xs) {
             Reference y = normalized(xs, statistics_of(xs[0]));
             for (std::size_t i = 0; i < y.values.size(); ++i)
               y.values[i] += xs[3].values[i], y.scale[i] += std::abs(xs[3].values[i]);
             return cut_off(y);
           },
       .operands = {{},
                    {.fill = between(0.1, 0.3)},
                    {.fill = between(0.1, 0.2), .curved = false},
                    {.fill = away_from_zero(2, 3), .curved = false}},
       .shapes = {{{3, 2, 2, 3}, {2}, {2}, {3, 2, 2, 3}}, {{2, 17, 3, 1}, {17}, {17}, {2, 17, 3, 1}}},
       .rejected = {{{3, 2, 2, 3}, {2}, {2}, {3, 2, 2, 1}}},
       .ulps = 16,
       .gradient_ulps = 256},
      {.name = "batch_norm_by_constants",
       .call = programs<3>(constant_program),
       .oracle =
           [](const auto& xs) {
             const auto c = static_cast<std::size_t>(xs[0].shape[1]);
             Reference statistics{{2, xs[0].shape[1]}, std::vector<double>(2 * c, 2.0)};
             for (std::size_t i = 0; i < c; ++i) statistics.values[i] = 0.25;
             return cut_off(normalized(xs, statistics));
           },
       .operands = {{}, {.fill = between(0.1, 0.3)}, {.fill = away_from_zero(1.5, 2), .curved = false}},
       .shapes = {{{3, 2, 2, 3}, {2}, {2}}, {{2, 17, 3, 1}, {17}, {17}}},
       .ulps = 16,
       .gradient_ulps = 256,
       .error = "batch_norm"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(BatchNorm, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(BatchStatistics, AreAccurateFarFromZero) {
  Rng rng{1};
  const auto x = Float::normal({64, 16, 8, 8}, 1e4f, 1, rng);
  const auto statistics = batch_statistics(x).to_host();
  const auto exact = statistics_of({x.shape(), std::vector<double>(x.span().begin(), x.span().end())});
  for (std::size_t i = 0; i < statistics.size(); ++i)
    EXPECT_NEAR(static_cast<double>(statistics[i]), exact.values[i], i < 16 ? 1e-3 : 2e-3) << i;
}

// Small images are summed in groups, of which the last may have fewer.
TEST(BatchNorm, OfGroupsOfImagesIsThatOfItsFormula) {
  using G = Grad<Double>;
  for (const Shape& shape : {Shape{7, 17, 10, 10}, Shape{300, 17, 1, 1}, Shape{20, 16, 4, 3}}) {
    Rng rng{3};
    const auto c = shape[1];
    const auto x = Double::normal(shape, 1, 2, rng), cotangent = Double::normal(shape, 0, 1, rng),
               weight = Double::uniform({c}, 0.5, 1.5, rng), bias = Double::normal({c}, 0, 1, rng);
    const auto run = [&](const auto& program) {
      const auto a = G(x).track(), b = G(weight).track(), d = G(bias).track();
      Tape<Double> tape;
      const auto y = program(a, b, d);
      tape.backward(y, cotangent);
      return std::vector{y.to_host(), a.grad().to_host(), b.grad().to_host(), d.grad().to_host()};
    };
    const auto fused = run([](const auto&... xs) { return batch_norm(xs...); });
    const auto composed = run([c](const auto& a, const auto& b, const auto& d) {
      const auto centred = a - mean(a, {0, 2, 3}, true);
      const auto deviation = sqrt(mean(centred * centred, {0, 2, 3}, true) + 1e-5);
      return centred / deviation * reshape(b, {1, c, 1, 1}) + reshape(d, {1, c, 1, 1});
    });
    for (std::size_t k = 0; k < fused.size(); ++k)
      for (std::size_t i = 0; i < fused[k].size(); ++i)
        ASSERT_NEAR(fused[k][i], composed[k][i], 1e-9) << k << ' ' << i;
  }
}

TEST(BatchStatistics, OfEqualElementsAreExact) {
  for (const float value : {1.1f, 100.1f, 1234567.0f}) {
    const auto x = Float::full({3, 16, 17, 16}, value);
    const auto statistics = batch_statistics(x).to_host();
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(statistics[i], value);
      EXPECT_EQ(statistics[16 + i], 0);
    }
    for (const float y : batch_norm(x, Float::ones({16}), Float::zeros({16})).to_host()) EXPECT_EQ(y, 0);
  }
}

TEST(BatchStatistics, DoNotHideWhatIsNotFinite) {
  for (const float special : {std::nanf(""), INFINITY, -INFINITY}) {
    auto x = Float::ones({2, 16, 3, 3});
    x.mutable_data()[4] = special;
    const auto statistics = batch_statistics(x).to_host();
    EXPECT_TRUE(std::isnan(statistics[16])) << special;
    EXPECT_EQ(statistics[17], 0);
  }
}

TEST(BatchStatistics, DoNotDependOnTheNumberOfThreads) {
  Rng rng{1};
  const auto x = Float::normal({16, 32, 33, 9}, 0, 1, rng);
  const int before = threads();
  set_threads(1);
  const auto one = batch_statistics(x).to_host();
  set_threads(2);
  EXPECT_EQ(batch_statistics(x).to_host(), one);
  set_threads(before);
}

TEST(BatchStatistics, RejectsWhatHasNoChannelsOrNothingInThem) {
  EXPECT_THROW(batch_statistics(Float::ones({3})), ShapeError);
  EXPECT_THROW(batch_statistics(Float::ones({0, 2, 2, 3})), ShapeError);
}

TEST(GroupNorm, RejectsGroupsThatDoNotDivideTheChannels) {
  const auto x = Float::ones({1, 4, 2, 2}), one = Float::ones({4});
  EXPECT_THROW(group_norm(x, 3, one, one), ShapeError);
  EXPECT_THROW(group_norm(x, 0, one, one), ShapeError);
}

TEST(BatchNorm, GivesWhatPyTorchDoes) {
  EXPECT_TRUE(none(check_fixtures(
      "batch_norm",
      {{"batch_norm", programs<3>(batch_program<false>)},
       {"batch_norm_relu", programs<3>(batch_program<true>)},
       {"group_norm",
        programs<3>([](const auto& x, const auto& w, const auto& b) { return group_norm(x, 2, w, b); })},
       {"instance_norm", programs<3>([](const auto&... xs) { return instance_norm(xs...); })}},
      {.ulps = 64, .floor = 1})));
}

}  // namespace
}  // namespace taut::test
