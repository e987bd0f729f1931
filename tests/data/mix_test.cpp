#include <taut/data/mix.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <taut/cpu/cpu.hpp>
#include <taut/interpret/grad.hpp>

namespace taut::data {
namespace {

// A batch whose image i has the label 10 i and only the value i.
struct Constant {
  std::vector<float> values;
  std::vector<std::int64_t> labels, samples;
  Shape shape;

  Constant(std::int64_t images, std::int64_t channels, std::int64_t height, std::int64_t width)
      : shape{images, channels, height, width} {
    for (std::int64_t i = 0; i < images; ++i) {
      labels.push_back(10 * i);
      samples.push_back(i);
      values.insert(values.end(), static_cast<std::size_t>(channels * height * width), static_cast<float>(i));
    }
  }
  Batch batch() const { return {values, shape, labels, samples, 0}; }
};

TEST(Mixup, BlendsEachSampleWithItsPartner) {
  const Constant images(7, 3, 4, 5);
  Rng rng{1};
  for (int i = 0; i < 50; ++i) {
    const auto mixed = mixup(images.batch(), 0.5, rng);
    ASSERT_EQ(mixed.shape, images.shape);
    ASSERT_EQ(mixed.values.size(), images.values.size());
    EXPECT_EQ(mixed.labels_a, images.labels);
    EXPECT_TRUE(std::ranges::is_permutation(mixed.labels_b, images.labels));
    for (std::size_t row = 0; row < 7; ++row) {
      const float a = mixed.lambda * static_cast<float>(row);
      const float b = (1 - mixed.lambda) * static_cast<float>(mixed.labels_b[row] / 10);
      for (std::size_t k = 0; k < 60; ++k) ASSERT_NEAR(mixed.values[60 * row + k], a + b, 1e-6f);
    }
  }
}

TEST(Mixup, LambdaFollowsTheBetaDistribution) {
  const Constant images(1, 1, 1, 1);
  for (const double alpha : {0.1, 0.2, 1.0, 3.0}) {
    Rng rng{2};
    std::vector<double> lambdas;
    const int count = 20'000;
    for (int i = 0; i < count; ++i) lambdas.push_back(mixup(images.batch(), alpha, rng).lambda);
    const double mean = std::accumulate(lambdas.begin(), lambdas.end(), 0.0) / count;
    double variance = 0, fourth = 0;
    for (const double lambda : lambdas) {
      variance += (lambda - mean) * (lambda - mean) / count;
      fourth += std::pow(lambda - mean, 4) / count;
    }
    // Beta(a, a) has the variance 1 / (4 (2a + 1)) and the kurtosis 3 - 6 / (2a + 3).
    const double expected = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(variance, expected, 0.03 * expected) << alpha;
    EXPECT_NEAR(fourth / (variance * variance), 3 - 6 / (2 * alpha + 3), 0.06) << alpha;
  }
}

TEST(Mixup, TinyAndHugeAlphasStayFinite) {
  const Constant images(2, 1, 1, 1);
  Rng rng{3};
  for (int i = 0; i < 100; ++i) {
    const float extreme = mixup(images.batch(), 1e-6, rng).lambda;
    EXPECT_TRUE(extreme == 0 || extreme == 1) << extreme;
    EXPECT_NEAR(mixup(images.batch(), 1e8, rng).lambda, 0.5f, 1e-3f);
  }
}

TEST(Cutmix, ReplacesOneRectangleInAllImages) {
  const Constant images(6, 2, 9, 11);
  Rng rng{4};
  bool any_replaced = false, any_kept = false;
  for (int i = 0; i < 200; ++i) {
    const auto mixed = cutmix(images.batch(), 1, rng);
    ASSERT_EQ(mixed.shape, images.shape);
    EXPECT_EQ(mixed.labels_a, images.labels);
    EXPECT_TRUE(std::ranges::is_permutation(mixed.labels_b, images.labels));
    // The bounds of what is replaced, found in the images that have another partner than themselves.
    int top = 9, bottom = 0, left = 11, right = 0, replaced = 0;
    const auto value = [&](int image, int channel, int y, int x) {
      return mixed.values[static_cast<std::size_t>(((image * 2 + channel) * 9 + y) * 11 + x)];
    };
    int moved = 0;
    while (moved < 6 && mixed.labels_b[static_cast<std::size_t>(moved)] == 10 * moved) ++moved;
    if (moved == 6) continue;
    for (int y = 0; y < 9; ++y) {
      for (int x = 0; x < 11; ++x) {
        if (value(moved, 0, y, x) == static_cast<float>(moved)) continue;
        top = std::min(top, y), bottom = std::max(bottom, y + 1), left = std::min(left, x),
        right = std::max(right, x + 1), ++replaced;
      }
    }
    EXPECT_EQ(replaced, std::max(0, bottom - top) * std::max(0, right - left)) << "no rectangle";
    EXPECT_NEAR(mixed.lambda, 1 - replaced / 99.0, 1e-6);
    (replaced > 0 ? any_replaced : any_kept) = true;
    for (int image = 0; image < 6; ++image) {
      const auto partner = static_cast<float>(mixed.labels_b[static_cast<std::size_t>(image)] / 10);
      for (int place = 0; place < 2 * 99; ++place) {
        const int y = place / 11 % 9, x = place % 11;
        const bool inside = y >= top && y < bottom && x >= left && x < right;
        ASSERT_EQ(value(image, place / 99, y, x), inside ? partner : static_cast<float>(image));
      }
    }
  }
  EXPECT_TRUE(any_replaced);
  EXPECT_TRUE(any_kept);
}

TEST(Mixing, DependsOnTheGeneratorOnly) {
  const Constant images(16, 3, 8, 8);
  for (auto* const mix : {&mixup, &cutmix}) {
    Rng rng{5}, same{5}, other{6};
    const auto a = mix(images.batch(), 1, rng), b = mix(images.batch(), 1, same),
               c = mix(images.batch(), 1, other);
    EXPECT_EQ(a.values, b.values);
    EXPECT_EQ(a.labels_b, b.labels_b);
    EXPECT_EQ(a.lambda, b.lambda);
    EXPECT_NE(a.labels_b, c.labels_b);
    EXPECT_NE(mix(images.batch(), 1, rng).labels_b, a.labels_b);  // the next one is another
  }
}

TEST(Mixing, GivesTensorsAndTargets) {
  const Constant images(4, 3, 2, 2);
  Rng rng{7};
  const auto mixed = mixup(images.batch(), 1, rng);
  const auto values = mixed.tensor<CpuArray>();
  EXPECT_EQ(values.shape(), images.shape);
  EXPECT_EQ(values.to_host(), mixed.values);
  EXPECT_EQ(mixed.targets_a<CpuArray>().to_host(), mixed.labels_a);
  EXPECT_EQ(mixed.targets_b<BasicCpuArray<double>>().to_host(), mixed.labels_b);
}

TEST(Mixing, TheLossIsTheOneOfTheMixedTargets) {
  using T = Grad<CpuArray>;
  const Constant images(3, 3, 1, 1);
  const std::vector<std::int64_t> labels{2, 0, 1};
  const Batch batch{images.values, images.shape, labels, images.samples, 0};
  Rng rng{9};
  const auto mixed = mixup(batch, 1, rng);
  const auto logits = reshape(mixed.tensor<T>(), {3, 3});
  const T loss = mixed.lambda * cross_entropy(logits, mixed.targets_a<T>()) +
                 (1 - mixed.lambda) * cross_entropy(logits, mixed.targets_b<T>());
  EXPECT_NEAR(loss.item(), std::log(3.0f), 1e-6f);  // each image has one value, so three equal logits
}

TEST(Mixing, BadInputIsAnError) {
  const Constant images(4, 3, 2, 2);
  Rng rng{8};
  for (const double alpha : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_THROW(mixup(images.batch(), alpha, rng), Error);
    EXPECT_THROW(cutmix(images.batch(), alpha, rng), Error);
  }
  const std::vector<float> values(8);
  const std::vector<std::int64_t> labels(4);
  const Batch flat{values, {4, 2}, labels, labels, 0};
  EXPECT_THROW(cutmix(flat, 1, rng), ShapeError);
  EXPECT_EQ(mixup(flat, 1, rng).shape, (Shape{4, 2}));
}

}  // namespace
}  // namespace taut::data
