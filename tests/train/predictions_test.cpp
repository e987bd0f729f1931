#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <taut/train/predictions.hpp>
#include <vector>

using namespace taut;
using namespace taut::train;

namespace {

using Floats = std::vector<float>;
using Labels = std::vector<std::int64_t>;

}  // namespace

TEST(Predictions, AreTheSoftmaxOfLogits) {
  Predictions predictions;
  predictions.add(Floats{0, std::log(3.0f), 1, 1}, Labels{0, 1});
  EXPECT_EQ(predictions.labels, (Labels{0, 1}));
  EXPECT_EQ(predictions.predicted, (Labels{1, 0}));
  EXPECT_NEAR(predictions.label_probability[0], 0.25, 1e-7);
  EXPECT_NEAR(predictions.predicted_probability[0], 0.75, 1e-7);
  EXPECT_DOUBLE_EQ(predictions.label_probability[1], 0.5);
  EXPECT_EQ(predictions.size(), 2u);
}

TEST(Predictions, SurviveLargeLogits) {
  Predictions predictions;
  predictions.add(Floats{-3e38f, 3e38f, 0}, Labels{1});
  EXPECT_EQ(predictions.predicted[0], 1);
  EXPECT_EQ(predictions.label_probability[0], 1.0);
}

TEST(Predictions, FindTheWorst) {
  Predictions predictions;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  predictions.add(Floats{2, 0, 0, 2, 0, 5, nan, nan, 5, 0}, Labels{0, 0, 0, 1, 1});
  EXPECT_EQ(predictions.worst(3), (std::vector<std::size_t>{3, 2, 4}));  // NaN; equals in their order
  EXPECT_EQ(predictions.worst(99).size(), 5u);
  EXPECT_EQ(predictions.worst(99).back(), 0u);
  EXPECT_TRUE(predictions.worst(0).empty());
  EXPECT_TRUE(Predictions().worst(5).empty());
}

TEST(Predictions, AddNothing) {
  Predictions predictions;
  predictions.add({}, {});
  EXPECT_EQ(predictions.size(), 0u);
}

TEST(Predictions, RefuseWhatDoesNotFit) {
  Predictions predictions;
  EXPECT_THROW(predictions.add(Floats{1, 2, 3}, Labels{0, 1}), ShapeError);
  EXPECT_THROW(predictions.add(Floats{}, Labels{0}), ShapeError);
  EXPECT_THROW(predictions.add(Floats{1}, Labels{}), ShapeError);
  EXPECT_THROW(predictions.add(Floats{1, 2, 3, 4}, Labels{0, 2}), Error);
  EXPECT_THROW(predictions.add(Floats{1, 2}, Labels{-1}), Error);
  EXPECT_EQ(predictions.size(), 0u) << "a batch was added in part";
}
