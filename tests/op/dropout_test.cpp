// Dropout through the suite, and its statistics.

#include <taut/op/dropout.hpp>

#include <cmath>

#include "suite.hpp"

namespace taut::test {
namespace {

constexpr double p = 0.375;

/// Dropout in training with a generator that starts anew at each call, so that each draws the same mask.
constexpr auto drop = [](auto&& x) {
  Rng rng{7};
  return dropout(std::forward<decltype(x)>(x), p, Mode::train, rng);
};

Reference dropped(const std::vector<Reference>& operands) {
  Reference result = operands[0];
  const auto stream = Rng{7}.draw(result.values.size());
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values[i] *= (stream.bits(i) >> 8) * 0x1p-24 >= p ? 1 / (1 - p) : 0;
  return result;
}

std::vector<Case> cases() {
  return {{.name = "dropout",
           .call = programs<1>(drop),
           .oracle = dropped,
           .operands = {{.curved = false}},
           .shapes = {{{0}},
                      {{0, 3}},
                      {{7}},
                      {{31}},
                      {{32}},
                      {{33}},
                      {{3, 5}},
                      {{1023}},
                      {{1025}},
                      {{2, 3, 1, 2, 2, 2}},
                      {{threaded}}},
           .forward_shapes = {{{}}, {{1}}}}};
}

INSTANTIATE_TEST_SUITE_P(Dropout, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Dropout, DoesNothingInEvaluation) {
  Rng rng{1};
  const auto before = rng.state();
  const auto x = Float::ones({5});
  EXPECT_EQ(dropout(x, 0.5, Mode::eval, rng).data(), x.data());
  EXPECT_EQ(rng.state(), before) << "evaluation must not draw random numbers";
}

TEST(Dropout, DropsTheGivenShare) {
  Rng rng{3};
  const std::int64_t n = 100000;
  for (const double share : {0.1, 0.5, 0.9}) {
    const auto y = dropout(Float::ones({n}), share, Mode::train, rng);
    double dropped_count = 0;
    for (const float value : y.span()) {
      if (value == 0)
        ++dropped_count;
      else
        EXPECT_FLOAT_EQ(value, static_cast<float>(1 / (1 - share)));
    }
    // Six standard deviations of the binomial distribution.
    EXPECT_NEAR(dropped_count, share * n, 6 * std::sqrt(n * share * (1 - share)));
  }
}

TEST(Dropout, DrawsAnotherMaskEachTime) {
  Rng rng{5};
  const auto x = Float::ones({64});
  EXPECT_NE(dropout(x, 0.5, Mode::train, rng).to_host(), dropout(x, 0.5, Mode::train, rng).to_host());
}

TEST(Dropout, KeepsAllOrNothingAtTheEnds) {
  Rng rng{9};
  const auto x = Double::full({100}, 3.0);
  EXPECT_EQ(dropout(x, 0.0, Mode::train, rng).to_host(), x.to_host());
  EXPECT_EQ(dropout(x, 1.0, Mode::train, rng).to_host(), std::vector<double>(100, 0.0));
}

TEST(Dropout, DropsNaNAndInfinity) {
  // PyTorch multiplies by the mask and so keeps a NaN where 0 is meant; Taut selects.
  Rng rng{11};
  for (const double special : {std::nan(""), HUGE_VAL})
    EXPECT_EQ(dropout(Double::full({9}, special), 1.0, Mode::train, rng).to_host(),
              std::vector<double>(9, 0.0));
}

TEST(Dropout, RejectsWhatIsNoProbability) {
  Rng rng{13};
  for (const double wrong : {-0.1, 1.5, std::nan("")}) {
    try {
      dropout(Double::ones({2, 3}), wrong, Mode::train, rng);
      ADD_FAILURE() << wrong << " was accepted";
    } catch (const ShapeError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("dropout: ", 0), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace taut::test
