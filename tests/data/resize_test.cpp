#include <taut/data/resize.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "image_fixtures.hpp"

namespace taut::data {
namespace {

using namespace taut::test;

// An image whose bytes count up, modulo 251.
Image counting(std::int64_t height, std::int64_t width) {
  Image image{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width))};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i % 251);
  return image;
}

std::vector<float> resized(const Image& image, std::int64_t height, std::int64_t width) {
  std::vector<float> values(static_cast<std::size_t>(3 * height * width), NAN);
  crop_and_resize(image, height, width, values);
  return values;
}

float byte(const Image& image, std::int64_t channel, std::int64_t y, std::int64_t x) {
  return image.pixels[static_cast<std::size_t>(3 * (y * image.width + x) + channel)];
}

TEST(CropAndResize, KeepsAnImageOfTheRightSize) {
  const auto image = counting(7, 9);
  const auto values = resized(image, 7, 9);
  for (std::int64_t channel = 0; channel < 3; ++channel)
    for (std::int64_t y = 0; y < 7; ++y)
      for (std::int64_t x = 0; x < 9; ++x)
        EXPECT_EQ(values[static_cast<std::size_t>((channel * 7 + y) * 9 + x)],
                  byte(image, channel, y, x) / 255.0f);
}

TEST(CropAndResize, CutsOutTheMiddle) {
  const auto image = counting(4, 10);
  const auto values = resized(image, 4, 4);
  for (std::int64_t y = 0; y < 4; ++y)
    for (std::int64_t x = 0; x < 4; ++x)
      EXPECT_EQ(values[static_cast<std::size_t>(4 * y + x)], byte(image, 0, y, x + 3) / 255.0f);
}

TEST(CropAndResize, InterpolatesWhereItEnlarges) {
  const Image image{1, 2, {0, 100, 0, 200, 100, 0}};
  // The centres of four output pixels are at 0.25, 0.75, 1.25 and 1.75; those of the input at 0.5 and 1.5.
  const std::vector<float> expected{0, 50, 150, 200};
  const auto values = resized(image, 2, 4);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(values[i], expected[i % 4] / 255.0f, 1e-6f);
    EXPECT_NEAR(values[8 + i], 100 / 255.0f, 1e-6f);
  }
}

TEST(CropAndResize, ASinglePixelFillsTheSample) {
  const Image image{1, 1, {10, 20, 30}};
  const auto values = resized(image, 3, 5);
  for (std::size_t i = 0; i < 45; ++i)
    EXPECT_NEAR(values[i], static_cast<float>(10 * (i / 15 + 1)) / 255.0f, 1e-6f);
}

TEST(CropAndResize, LongLinesAndSinglePixelsWork) {
  for (const auto& [height, width] : {std::pair{1, 5000}, {5000, 1}, {3, 1000}, {1000, 999}}) {
    const auto image = counting(height, width);
    for (const float value : resized(image, 1, 1)) EXPECT_TRUE(value >= 0 && value <= 251 / 255.0f);
    for (const float value : resized(image, 7, 3)) EXPECT_TRUE(value >= 0 && value <= 251 / 255.0f);
  }
}

TEST(CropAndResize, BadSizesAreErrors) {
  const auto image = counting(2, 2);
  std::vector<float> values(12);
  EXPECT_THROW(crop_and_resize(image, 0, 2, values), Error);
  EXPECT_THROW(crop_and_resize(image, 2, -2, values), Error);
  EXPECT_THROW(crop_and_resize(image, 2, 3, values), Error);
  EXPECT_THROW(crop_and_resize(Image{}, 2, 2, values), Error);
}

#if TAUT_HAS_STB

// Pillow rounds to 8 bits after each of the two directions.
TEST(CropAndResize, AgreesWithPillow) {
  const auto photo = read_image(image_path("photo.png"));
  for (const auto* size : {"8x8", "11x5", "60x60", "23x23", "3x40"}) {
    const auto expected = read_image(image_path("photo_" + std::string(size) + ".png"));
    const auto values = resized(photo, expected.height, expected.width);
    double difference = 0;
    for (std::int64_t channel = 0; channel < 3; ++channel) {
      for (std::int64_t y = 0; y < expected.height; ++y) {
        for (std::int64_t x = 0; x < expected.width; ++x) {
          const auto value =
              255 * values[static_cast<std::size_t>((channel * expected.height + y) * expected.width + x)];
          ASSERT_NEAR(value, byte(expected, channel, y, x), 1.01) << size << ": " << y << ", " << x;
          difference += value - byte(expected, channel, y, x);
        }
      }
    }
    EXPECT_NEAR(difference / static_cast<double>(values.size()), 0, 0.1) << size;
  }
}

#endif

}  // namespace
}  // namespace taut::data
