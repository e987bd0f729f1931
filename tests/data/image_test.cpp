#include <taut/data/image.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "idx_bytes.hpp"
#include "image_fixtures.hpp"

#if TAUT_HAS_STB
#include <stb/stb_image.h>  // a program may also use it for itself
#endif

namespace taut::data {
namespace {

using namespace taut::test;

// Expects that `run` throws a `DataError` of `path` at `offset` whose message has `text`.
void expect_error(const std::function<void()>& run, const std::string& path, std::int64_t offset,
                  const std::string& text) {
  try {
    run();
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), path);
    EXPECT_EQ(error.offset(), offset) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

void expect_file_error(const std::string& name, std::int64_t offset, const std::string& text) {
  expect_error([&] { read_image(image_path(name)); }, image_path(name), offset, text);
}

TEST(Image, OtherFilesAreErrors) {
  expect_file_error("empty.png", 0, "image: the file is empty");
  expect_file_error("make.py", 0, "neither a PNG nor a JPEG");
  expect_file_error("nowhere.png", -1, "cannot open the file");
  expect_error([&] { read_image(image_directory().string()); }, image_directory().string(), 0,
               "cannot read the file");
  const Bytes start{0x89, 'P', 'N'};
  expect_error([&] { decode_image(start, "start"); }, "start", 0, "neither a PNG nor a JPEG");
}

TEST(Image, TooLargeFilesAreErrors) {
  const auto path = image_path("photo.png");
  const auto bytes = image_bytes("photo.png");
  const auto size = static_cast<std::int64_t>(bytes.size());
  expect_error([&] { read_image(path, {.max_bytes = size - 1}); }, path, size - 1, "larger than the limit");
  expect_error([&] { decode_image(bytes, "photo", {.max_bytes = 7}); }, "photo", 7, "limit of 7 bytes");
}

TEST(Image, TruncatedFilesAreErrorsWhereTheyEnd) {
  for (const auto* name : {"rgb.png", "colour.jpg", "progressive.jpg", "grey.jpg", "one_pixel.png"}) {
    const auto bytes = image_bytes(name);
    for (std::size_t size = 8; size < bytes.size(); ++size) {
      expect_error([&] { decode_image(std::span(bytes).first(size), "cut"); }, "cut",
                   static_cast<std::int64_t>(size), "the file is truncated");
    }
  }
}

TEST(Image, DamagedPngFilesAreErrors) {
  const auto bytes = image_bytes("rgb.png");
  for (std::size_t position = 8; position < bytes.size(); ++position) {
    auto damaged = bytes;
    damaged[position] ^= 0x10;
    EXPECT_THROW(decode_image(damaged, "damaged"), DataError) << "at byte " << position;
  }
  auto damaged = bytes;
  damaged[8 + 25 + 10] ^= 1;  // within the chunk behind the header
  expect_error([&] { decode_image(damaged, "damaged"); }, "damaged", 8 + 25, "its checksum is wrong");
}

TEST(Image, JpegFilesWithImpossibleTablesAreErrors) {
  const Bytes start{0xff, 0xd8}, end{0xff, 0xd9};
  const Bytes crowded = start + Bytes{0xff, 0xc4, 0, 19, 0} + Bytes(16, 255) + end;
  expect_error([&] { decode_image(crowded, "jpeg"); }, "jpeg", 23, "more than 256 codes");
  const Bytes short_of_codes = start + Bytes{0xff, 0xc4, 0, 19, 0} + Bytes(16, 1) + end;
  expect_error([&] { decode_image(short_of_codes, "jpeg"); }, "jpeg", 23, "than its segment holds");
  const Bytes cut = start + Bytes{0xff, 0xc4, 0, 4, 0, 1} + end;
  expect_error([&] { decode_image(cut, "jpeg"); }, "jpeg", 8, "than its segment holds");
  expect_error([&] { decode_image(start + end, "jpeg"); }, "jpeg", 4, "no frame, and so no size");
  const Bytes no_segment = start + Bytes{0xff, 0xc4, 0, 1} + end;
  expect_error([&] { decode_image(no_segment, "jpeg"); }, "jpeg", 4, "shorter than its own length");
  Bytes scans = start;
  for (int i = 0; i < 501; ++i) scans = scans + Bytes{0xff, 0xda, 0, 2};
  expect_error([&] { decode_image(scans + end, "jpeg"); }, "jpeg", 2 + 501 * 4, "more than 500 scans");
}

#if TAUT_HAS_STB

using Pixel = std::array<int, 3>;

Pixel pixel(const Image& image, std::int64_t x, std::int64_t y) {
  const auto* const at = image.pixels.data() + 3 * (y * image.width + x);
  return {at[0], at[1], at[2]};
}

// The colours of fixtures/images/make.py.
Pixel colour(int x, int y) { return {40 * x + 10, 80 * y + 20, 200 - 30 * x - 10 * y}; }
Pixel grey(int x, int y) { return {colour(x, y)[0], colour(x, y)[0], colour(x, y)[0]}; }
Pixel bilevel(int x, int y) { return grey(x, y)[0] > 90 ? Pixel{255, 255, 255} : Pixel{0, 0, 0}; }

void expect_pixels(const std::string& name, Pixel (*expected)(int x, int y)) {
  const auto image = read_image(image_path(name));
  ASSERT_EQ(image.height, 3) << name;
  ASSERT_EQ(image.width, 5) << name;
  ASSERT_EQ(image.pixels.size(), 45u) << name;
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 5; ++x) EXPECT_EQ(pixel(image, x, y), expected(x, y)) << name << " " << x << " " << y;
}

TEST(Image, EveryKindOfPngBecomesThreeChannelsOfEightBits) {
  for (const auto* name : {"rgb.png", "rgba.png", "rgb16.png", "rgba16.png", "palette.png"})
    expect_pixels(name, colour);
  for (const auto* name : {"grey.png", "grey_alpha.png", "grey16.png"}) expect_pixels(name, grey);
  expect_pixels("bilevel.png", bilevel);
}

TEST(Image, EveryKindOfJpegBecomesThreeChannels) {
  for (const auto* name : {"colour.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg"}) {
    const auto image = read_image(image_path(name));
    ASSERT_EQ(image.height, 40) << name;
    ASSERT_EQ(image.width, 56) << name;
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 56; ++x) {
        const int red = 4 * x + 10;
        const bool is_grey = name == std::string("grey.jpg");
        const Pixel expected = is_grey ? Pixel{red, red, red} : Pixel{red, 5 * y + 20, 240 - 2 * x - 2 * y};
        for (std::size_t channel = 0; channel < 3; ++channel)
          ASSERT_NEAR(pixel(image, x, y)[channel], expected[channel], 12) << name << " " << x << " " << y;
      }
    }
  }
}

TEST(Image, ReadsASinglePixel) {
  const auto image = read_image(image_path("one_pixel.png"));
  ASSERT_EQ(image.pixels.size(), 3u);
  EXPECT_EQ(pixel(image, 0, 0), (Pixel{9, 130, 250}));
  const auto jpeg = read_image(image_path("one_pixel.jpg"));
  ASSERT_EQ(jpeg.pixels.size(), 3u);
  EXPECT_NEAR(pixel(jpeg, 0, 0)[2], 240, 6);
}

TEST(Image, HugeDeclaredSizesAreErrorsBeforeDecoding) {
  expect_file_error("huge.png", -1, "declares 100000 x 100000 pixels, more than the limit of 67108864");
  const auto path = image_path("photo.png");
  EXPECT_EQ(read_image(path, {.max_pixels = 23 * 37}).width, 37);
  EXPECT_EQ(read_image(image_path("progressive.jpg"), {.max_pixels = 40 * 56}).width, 56);
  expect_error([&] { decode_image(image_bytes("progressive.jpg"), "jpeg", {.max_pixels = 40 * 56 - 1}); },
               "jpeg", -1, "declares 40 x 56 pixels");
  EXPECT_THROW(read_image(image_path("huge.png"), {.max_pixels = std::int64_t{1} << 40}), DataError);
  expect_error([&] { read_image(path, {.max_pixels = 23 * 37 - 1}); }, path, -1, "declares 23 x 37 pixels");
}

TEST(Image, DataThatExpandBeyondTheDeclaredSizeAreAnError) {
  expect_file_error("bomb.png", -1, "expands to more than its size");
}

TEST(Image, ThreadsDecodeIndependently) {
  const auto good = read_image(image_path("colour.jpg"));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 30; ++k) {
        if (i == 1) {
          EXPECT_THROW(read_image(image_path("bomb.png")), DataError);
        } else if (read_image(image_path("colour.jpg")).pixels == good.pixels) {
          ++right;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 60);
}

#else

TEST(Image, SaysWhatIsMissing) { expect_file_error("rgb.png", -1, "built without stb_image"); }

#endif

}  // namespace
}  // namespace taut::data
