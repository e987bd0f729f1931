#include <taut/data/augment.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <taut/data/byte_images.hpp>
#include <taut/data/cifar.hpp>
#include <taut/data/data_loader.hpp>

namespace taut::data {
namespace {

using Values = std::vector<float>;

// The values 1, 2, 3, ... of an image, none of which is zero.
Values counting(const Shape& shape) {
  Values values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

template <class F> Values transformed(const F& transform, const Shape& shape, Rng& rng) {
  Values values = counting(shape);
  transform.check(shape);
  transform(values, shape, rng);
  return values;
}

// By the definition: pads all around, then cuts out the window whose corner is at (top, left).
Values padded_and_cropped(const Values& values, const Shape& shape, std::int64_t padding, std::int64_t top,
                          std::int64_t left) {
  const auto height = shape[1] + 2 * padding, width = shape[2] + 2 * padding;
  Values padded(static_cast<std::size_t>(shape[0] * height * width)), result;
  const auto at = [](std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>((c * h + y) * w + x);
  };
  for (std::int64_t c = 0; c < shape[0]; ++c)
    for (std::int64_t y = 0; y < shape[1]; ++y)
      for (std::int64_t x = 0; x < shape[2]; ++x)
        padded[at(height, width, c, y + padding, x + padding)] = values[at(shape[1], shape[2], c, y, x)];
  for (std::int64_t c = 0; c < shape[0]; ++c)
    for (std::int64_t y = 0; y < shape[1]; ++y)
      for (std::int64_t x = 0; x < shape[2]; ++x)
        result.push_back(padded[at(height, width, c, y + top, x + left)]);
  return result;
}

TEST(RandomCrop, CutsEveryWindowOfThePaddedImageEquallyOften) {
  const Shape shapes[] = {{3, 4, 5}, {1, 5, 4}, {2, 1, 1}, {1, 2, 3}};
  for (const auto& shape : shapes) {
    for (const std::int64_t padding : {1, 2, 4}) {  // the last two also move some images out of sight
      const auto places = 2 * padding + 1;
      std::multimap<Values, std::pair<std::int64_t, std::int64_t>> windows;
      for (std::int64_t top = 0; top < places; ++top)
        for (std::int64_t left = 0; left < places; ++left)
          windows.insert({padded_and_cropped(counting(shape), shape, padding, top, left), {top, left}});
      std::map<Values, int> seen;
      Rng rng{1};
      const int tries = 4000;
      for (int i = 0; i < tries; ++i) {
        const auto values = transformed(RandomCrop{padding}, shape, rng);
        ASSERT_TRUE(windows.contains(values)) << "after " << i << " images of " << to_string(shape);
        ++seen[values];
      }
      for (const auto& [values, count] : seen) {
        const auto expected =
            tries * static_cast<double>(windows.count(values)) / static_cast<double>(places * places);
        EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
      }
      std::set<Values> distinct;
      for (const auto& window : windows) distinct.insert(window.first);
      EXPECT_EQ(seen.size(), distinct.size());
    }
  }
}

TEST(RandomCrop, WithoutPaddingChangesNothing) {
  Rng rng{1};
  EXPECT_EQ(transformed(RandomCrop{0}, {3, 4, 5}, rng), counting({3, 4, 5}));
}

TEST(HorizontalFlip, MirrorsEachRowWithItsProbability) {
  const Shape shape{2, 2, 3};
  const Values mirrored{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10};
  Rng rng{2};
  int flips = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto values = transformed(HorizontalFlip{0.3}, shape, rng);
    if (values == mirrored) {
      ++flips;
    } else {
      ASSERT_EQ(values, counting(shape));
    }
  }
  EXPECT_NEAR(flips, 1200, 150);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(transformed(HorizontalFlip{1}, shape, rng), mirrored);
    EXPECT_EQ(transformed(HorizontalFlip{0}, shape, rng), counting(shape));
  }
}

TEST(Cutout, ZeroesASquareAroundAnyPixel) {
  const Shape shape{2, 6, 7};
  for (const std::int64_t size : {0, 1, 3, 4, 20}) {
    std::set<Values> expected, seen;
    for (std::int64_t cy = 0; cy < 6; ++cy) {
      for (std::int64_t cx = 0; cx < 7; ++cx) {
        auto values = counting(shape);
        for (std::int64_t i = 0; i < shape.size(); ++i) {
          const auto y = i / 7 % 6, x = i % 7, top = cy - size / 2, left = cx - size / 2;
          if (y >= top && y < top + size && x >= left && x < left + size)
            values[static_cast<std::size_t>(i)] = 0;
        }
        expected.insert(values);
      }
    }
    Rng rng{3};
    for (int i = 0; i < 2000; ++i) seen.insert(transformed(Cutout{size}, shape, rng));
    EXPECT_EQ(seen, expected) << "size " << size;
  }
}

TEST(Normalize, ScalesEachChannel) {
  Rng rng{4};
  EXPECT_EQ(transformed(Normalize{{1, 5}, {2, 0.5f}}, {2, 2, 2}, rng),
            (Values{0, 0.5f, 1, 1.5f, 0, 2, 4, 6}));
  EXPECT_EQ(rng, Rng{4});  // nothing was drawn
  EXPECT_EQ(transformed(Normalize{std::array{1.0f}, std::array{4.0f}}, {1, 3}, rng),
            (Values{0, 0.25f, 0.5f}));
}

// Expects that `make` throws an `E` whose message has `text`.
template <class E, class Make> void expect_error(Make make, const std::string& text) {
  try {
    make();
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// `count` images of shape [3, 8, 8] whose pixels are all different within an image.
ByteImages images(std::int64_t count) {
  std::vector<std::uint8_t> pixels, labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::uint8_t>(i % 10));
    for (std::int64_t pixel = 0; pixel < 192; ++pixel)
      pixels.push_back(static_cast<std::uint8_t>(1 + (pixel + i) % 255));
  }
  return {"images", {3, 8, 8}, std::move(pixels), std::move(labels)};
}

TEST(Augmented, AppliesTheTransformsInOrder) {
  const auto add = [](std::span<float> values, const Shape&, Rng&) {
    for (float& x : values) x += 1;
  };
  const auto scale = [](std::span<float> values, const Shape& shape, Rng&) {
    for (float& x : values) x *= static_cast<float>(shape[1]);
  };
  const Augmented changed{images(3), add, scale};
  static_assert(Dataset<decltype(changed)>);
  EXPECT_EQ(changed.size(), 3);
  EXPECT_EQ(changed.sample_shape(), (Shape{3, 8, 8}));
  Rng rng{0};
  Values plain(192), values(192);
  EXPECT_EQ(changed.dataset().get(2, plain, rng), 2);
  EXPECT_EQ(changed.get(2, values, rng), 2);
  for (std::size_t i = 0; i < 192; ++i) EXPECT_EQ(values[i], (plain[i] + 1) * 8);
}

TEST(Augmented, TakesAnAugmentedDataset) {
  const Augmented once{images(5), HorizontalFlip{1}};
  const Augmented twice{Augmented{images(5), HorizontalFlip{1}}, HorizontalFlip{1}, RandomCrop{0}};
  Rng rng{0};
  Values plain(192), values(192);
  images(5).get(1, plain, rng);
  once.get(1, values, rng);
  EXPECT_NE(values, plain);
  twice.get(1, values, rng);
  EXPECT_EQ(values, plain);
}

TEST(Augmented, ChecksTheTransformsBeforeTheyRun) {
  const auto set = images(2);
  const ByteImages flat("flat", {4}, std::vector<std::uint8_t>(4), std::vector<std::uint8_t>(1));
  expect_error<ShapeError>(
      [&] {
        Augmented{flat, RandomCrop{}};
      },
      "RandomCrop: expected images of shape [channels, height, width], got: [4]");
  expect_error<ShapeError>([&] { Augmented{flat, HorizontalFlip{}}; }, "HorizontalFlip: expected images");
  expect_error<ShapeError>([&] { Augmented{flat, Cutout{}}; }, "Cutout: expected images");
  expect_error<ShapeError>(
      [&] {
        Augmented{set, HorizontalFlip{}, Normalize{{0}, {1}}};
      },
      "Normalize: expected samples of 1 channels, one for each mean, got [3, 8, 8]");
  expect_error<Error>(
      [&] {
        Augmented{set, RandomCrop{-1}};
      },
      "RandomCrop: expected a padding of at least 0");
  expect_error<Error>([&] { Augmented{set, HorizontalFlip{1.5}}; }, "a probability from 0 to 1, got 1.5");
  expect_error<Error>([&] { Augmented{set, HorizontalFlip{NAN}}; }, "a probability from 0 to 1");
  expect_error<Error>([&] { Augmented{set, Cutout{-2}}; }, "Cutout: expected a size of at least 0");
  expect_error<Error>([] { Normalize({0, 1}, {1}); }, "as many means as standard deviations, got 2 and 1");
  expect_error<Error>([] { Normalize({0}, {0}); }, "Normalize: expected positive standard deviations");
}

auto augmented_images() {
  return Augmented{images(103), RandomCrop{2}, HorizontalFlip{}, Normalize{cifar10_mean, cifar10_std},
                   Cutout{4}};
}

template <class Batches> std::vector<Values> values_of(Batches&& batches) {
  std::vector<Values> all;
  for (const Batch& batch : batches) all.emplace_back(batch.values.begin(), batch.values.end());
  return all;
}

class AugmentedLoader : public testing::TestWithParam<int> {
 protected:
  DataLoader<decltype(augmented_images())> loader(int workers) const {
    return DataLoader{augmented_images(), {.batch_size = 8, .seed = 5, .workers = workers, .prefetch = 2}};
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, AugmentedLoader, testing::Values(0, 1, 3));

TEST_P(AugmentedLoader, BatchesDoNotDependOnTheWorkers) {
  auto here = loader(GetParam()), sequential = loader(0);
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(values_of(here), values_of(sequential));
}

TEST_P(AugmentedLoader, ResumingInMidEpochGivesTheSameBatches) {
  const auto whole = values_of(loader(0).epoch(2));
  for (const std::int64_t start : {0, 1, 7, 12, 13}) {
    const auto rest = values_of(loader(GetParam()).epoch(2, start));
    EXPECT_EQ(rest, std::vector<Values>(whole.begin() + start, whole.end())) << "from batch " << start;
  }
}

TEST(AugmentedLoader, ASampleChangesFromEpochToEpoch) {
  DataLoader loader{augmented_images(), {.batch_size = 103, .shuffle = false, .workers = 0}};
  const auto first = values_of(loader), second = values_of(loader);
  ASSERT_EQ(first[0].size(), second[0].size());
  int same = 0;
  for (std::ptrdiff_t sample = 0; sample < 103; ++sample)
    same += std::equal(first[0].begin() + sample * 192, first[0].begin() + (sample + 1) * 192,
                       second[0].begin() + sample * 192);
  EXPECT_LT(same, 10);
}

}  // namespace
}  // namespace taut::data
