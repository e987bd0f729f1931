#include <gtest/gtest.h>

#include <cmath>
#include <taut/train/history.hpp>

using namespace taut::train;

TEST(RunningMean, WeighsBatchesBySamples) {
  RunningMean mean;
  mean.add(1.0, 30);
  mean.add(4.0, 10);
  EXPECT_DOUBLE_EQ(mean.value(), 1.75);
  EXPECT_EQ(mean.samples(), 40);
}

TEST(RunningMean, IsNanWithoutSamples) { EXPECT_TRUE(std::isnan(RunningMean{}.value())); }

TEST(RunningMean, ShowsADivergedBatch) {
  RunningMean mean;
  mean.add(1.0, 1);
  mean.add(not_measured, 1);
  mean.add(1.0, 1);
  EXPECT_TRUE(std::isnan(mean.value()));
}

TEST(RunningMean, KeepsSmallBatchesOfALongPass) {
  RunningMean mean;
  for (int i = 0; i < 10'000'000; ++i) mean.add(0.1, 1);  // a float would end at 0.1087937
  EXPECT_NEAR(mean.value(), 0.1, 1e-9);
}

TEST(EpochResult, IsNotMeasuredByDefault) {
  const EpochResult result;
  EXPECT_TRUE(std::isnan(result.train_loss));
  EXPECT_TRUE(std::isnan(result.test_accuracy));
}
