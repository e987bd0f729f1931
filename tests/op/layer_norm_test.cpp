// Layer normalisation, and the operators that its derivatives are made of, through the suite.

#include <taut/op/layer_norm.hpp>

#include <cmath>
#include <tuple>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// Mean and 1 / √(variance + eps) of the n elements from x[begin] on, by definition.
std::pair<double, double> statistics_of(const Reference& x, std::size_t begin, std::size_t n) {
  double mean = 0, variance = 0;
  for (std::size_t i = begin; i < begin + n; ++i) mean += x.values[i] / static_cast<double>(n);
  for (std::size_t i = begin; i < begin + n; ++i)
    variance += std::pow(x.values[i] - mean, 2) / static_cast<double>(n);
  return {mean, 1 / std::sqrt(variance + 1e-5)};
}

/// A tensor of the shape of x whose elements are f(begin of the row, position in it, x̂, 1 / deviation), with
/// the size of the terms that it is made of in `scale`.
template <class F> Reference for_each_normal(const Reference& x, std::size_t n, const F& f) {
  Reference y{x.shape, std::vector<double>(x.values.size()), std::vector<double>(x.values.size())};
  for (std::size_t begin = 0; begin < x.values.size(); begin += n) {
    const auto [mean, inverse] = statistics_of(x, begin, n);
    for (std::size_t k = 0; k < n; ++k) {
      const double normal = (x.values[begin + k] - mean) * inverse;
      std::tie(y.values[begin + k], y.scale[begin + k]) = f(begin, k, normal, inverse);
    }
  }
  return y;
}

Reference normalized(const std::vector<Reference>& xs) {
  const auto &weight = xs[1].values, &bias = xs[2].values;
  return for_each_normal(
      xs[0], weight.size(), [&](std::size_t, std::size_t k, double normal, double inverse) {
        return std::pair(normal * weight[k] + bias[k], 3 * inverse * std::abs(weight[k]) + std::abs(bias[k]));
      });
}

Reference gradient(const std::vector<Reference>& xs) {
  const Reference &g = xs[0], &x = xs[1], &weight = xs[2];
  const std::size_t n = weight.values.size();
  return for_each_normal(x, n, [&](std::size_t begin, std::size_t k, double normal, double inverse) {
    const double mean = statistics_of(x, begin, n).first;
    double mean_h = 0, mean_with_normal = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double h = g.values[begin + i] * weight.values[i] / static_cast<double>(n);
      mean_h += h, mean_with_normal += h * (x.values[begin + i] - mean) * inverse;
    }
    const double h = g.values[begin + k] * weight.values[k];
    return std::pair((h - mean_h - normal * mean_with_normal) * inverse, 8 * inverse * (1 + inverse));
  });
}

/// Σ g and Σ g x̂ over the rows of n elements.
Oracle sums_of(int axes) {
  return [axes](const std::vector<Reference>& xs) {
    const Reference &g = xs[0], &x = xs[1];
    std::size_t n = 1;
    for (int i = 1; i <= axes; ++i) n *= static_cast<std::size_t>(x.shape[-i]);
    Reference sums{{2, static_cast<std::int64_t>(n)}, std::vector<double>(2 * n), std::vector<double>(2 * n)};
    for_each_normal(x, n, [&](std::size_t begin, std::size_t k, double normal, double inverse) {
      const double value = g.values[begin + k];
      sums.values[k] += value, sums.values[n + k] += value * normal;
      sums.scale[k] += std::abs(value), sums.scale[n + k] += 3 * std::abs(value) * inverse;
      return std::pair(0.0, 0.0);
    });
    return sums;
  };
}

template <int Axes> Case sums_case() {
  return {.name = "layer_norm_sums_of_" + std::to_string(Axes),
          .call = programs<2>(
              [](const auto& g, const auto& x) { return eval(op::LayerNormSums{.axes = Axes}, g, x); }),
          .oracle = sums_of(Axes),
          .operands = {{}, {}},
          .shapes = {{{4, 3, 5}, {4, 3, 5}}, {{2, 3, 2, 4}, {2, 3, 2, 4}}, {{150, 33}, {150, 33}}},
          .forward_shapes = {{{0, 3}, {0, 3}}, {{3, 1030}, {3, 1030}}},
          .rejected = {{{3, 2}, {2, 3}}, {{}, {}}},
          .ulps = 16,
          .gradient_ulps = 256,
          .error = "layer_norm_sums"};
}

std::vector<Case> cases() {
  return {
      {.name = "layer_norm",
       .call = programs<3>(TAUT_FUNCTION(layer_norm)),
       .oracle = normalized,
       .operands = {{}, {}, {.curved = false}},
       .shapes = {{{3, 5}, {5}, {5}},
                  {{7}, {7}, {7}},
                  {{2, 3, 4}, {3, 4}, {3, 4}},
                  {{2, 2, 3, 5}, {5}, {5}},
                  {{40, 33}, {33}, {33}},
                  {{2, 1030}, {1030}, {1030}}},
       .forward_shapes =
           {{{0, 3}, {3}, {3}}, {{5, 1}, {1}, {1}}, {{3, 0}, {0}, {0}}, {{300, 257}, {257}, {257}}},
       .rejected = {{{3, 2}, {3}, {3}}, {{3, 2}, {2}, {3}}, {{3}, {}, {}}, {{2}, {2, 2}, {2, 2}}},
       .ulps = 16,
       .gradient_ulps = 256},
      {.name = "layer_norm_gradient",
       .call = programs<3>([](const auto& g, const auto& x, const auto& w) {
         return eval(op::LayerNormGradient{}, g, x, w);
       }),
       .oracle = gradient,
       .operands = {{}, {}, {}},
       .shapes = {{{3, 5}, {3, 5}, {5}}, {{2, 3, 2, 4}, {2, 3, 2, 4}, {2, 4}}, {{20, 33}, {20, 33}, {33}}},
       .forward_shapes = {{{0, 3}, {0, 3}, {3}}, {{2, 1030}, {2, 1030}, {1030}}},
       .rejected = {{{3, 2}, {3, 2}, {3}}, {{3}, {2}, {2}}},
       .ulps = 16,
       .gradient_ulps = 256},
      sums_case<1>(),
      sums_case<2>(),
  };
}

INSTANTIATE_TEST_SUITE_P(LayerNorm, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(LayerNorm, GivesWhatPyTorchDoes) {
  EXPECT_TRUE(none(check_fixtures("layer_norm", programs_of(cases()), {.ulps = 64, .floor = 1})));
}

TEST(LayerNorm, OfEqualElementsIsTheBias) {
  for (const float value : {1.1f, 100.1f, 1234567.0f}) {
    const auto y = layer_norm(Float::full({3, 37}, value), Float::ones({37}), Float::full({37}, 0.5f));
    for (const float element : y.to_host()) EXPECT_EQ(element, 0.5f);
  }
}

}  // namespace
}  // namespace taut::test
