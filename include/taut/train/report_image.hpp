#pragma once
// Classified images as part of a page of HTML, with their pixels in it.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "html.hpp"
#include "svg_chart.hpp"

namespace taut::train {

/// An image and what a classifier made of it.
struct ReportImage {
  Shape shape{};                       ///< [1 or 3, height, width]: grey, or red, green and blue
  std::vector<std::uint8_t> pixels{};  ///< in row-major order, 0 to 255
  std::string label{};                 ///< the name of the true class
  std::string predicted{};             ///< the name of the predicted class
  double label_probability = 0;        ///< of the true class, from 0 to 1
  double predicted_probability = 0;    ///< of the predicted class, from 0 to 1
};

/// Pixels from 0 to 255 of values from `low` to `high`; what is beyond, or NaN, becomes the nearest or 0.
inline std::vector<std::uint8_t> to_pixels(std::span<const float> values, float low = 0, float high = 1) {
  std::vector<std::uint8_t> pixels;
  for (const float value : values) {
    const float scaled = 255 * (value - low) / (high - low);
    pixels.push_back(scaled > 0 ? static_cast<std::uint8_t>(std::lround(std::min(scaled, 255.0f))) : 0);
  }
  return pixels;
}

namespace detail {

/// An image of height x width pixels of three channels, each channel after the other.
struct Rgb {
  std::size_t height, width;
  std::vector<std::uint8_t> planes;

  std::uint8_t at(std::size_t channel, std::size_t y, std::size_t x) const {
    return planes[(channel * height + y) * width + x];
  }
};

/// Throws `ShapeError` if the pixels are not an image of the shape, or it is of no kind that can be shown.
inline Rgb to_rgb(const ReportImage& image) {
  const Shape& shape = image.shape;
  if (shape.rank() != 3 || (shape[0] != 1 && shape[0] != 3) || shape.size() == 0)
    throw ShapeError("set_images: expected images of shape [1 or 3, height, width], got " + to_string(shape));
  if (static_cast<std::int64_t>(image.pixels.size()) != shape.size())
    throw ShapeError("set_images: expected " + std::to_string(shape.size()) +
                     " pixels for an image of shape " + to_string(shape) + ", got " +
                     std::to_string(image.pixels.size()));
  Rgb rgb{static_cast<std::size_t>(shape[1]), static_cast<std::size_t>(shape[2]), {}};
  for (int copy = 0; copy < (shape[0] == 1 ? 3 : 1); ++copy)
    rgb.planes.insert(rgb.planes.end(), image.pixels.begin(), image.pixels.end());
  return rgb;
}

/// The image with each square of `factor` x `factor` pixels replaced by its mean; squares at the lower and
/// right border may be smaller.
inline Rgb shrink(const Rgb& image, std::size_t factor) {
  const auto parts = [factor](std::size_t size) { return (size + factor - 1) / factor; };
  Rgb small{parts(image.height), parts(image.width), {}};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t top = 0; top < image.height; top += factor) {
      for (std::size_t left = 0; left < image.width; left += factor) {
        std::size_t total = 0, count = 0;
        for (std::size_t y = top; y < std::min(top + factor, image.height); ++y)
          for (std::size_t x = left; x < std::min(left + factor, image.width); ++x, ++count)
            total += image.at(channel, y, x);
        small.planes.push_back(static_cast<std::uint8_t>((total + count / 2) / count));
      }
    }
  }
  return small;
}

/// The image no larger than `side` in either direction.
inline Rgb shrink_to(const Rgb& image, std::size_t side) {
  const std::size_t factor = (std::max(image.height, image.width) + side - 1) / side;
  return factor > 1 ? shrink(image, factor) : image;
}

/// A BMP file: 24 bits a pixel, uncompressed (Microsoft, "Bitmap Storage": BITMAPFILEHEADER and
/// BITMAPINFOHEADER). Rows go from the bottom up, in blue, green and red, each padded to 4 bytes.
inline std::vector<std::uint8_t> to_bmp(const Rgb& image) {
  constexpr std::size_t header = 14 + 40;
  const std::size_t row = (3 * image.width + 3) / 4 * 4;
  std::vector<std::uint8_t> file;
  const auto number = [&file](std::size_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  };
  file.assign({'B', 'M'});
  number(header + row * image.height, 4);
  number(0, 4);  // reserved
  number(header, 4);
  number(40, 4);  // the size of the second header
  number(image.width, 4);
  number(image.height, 4);
  number(1, 2);                              // planes
  number(24, 2);                             // bits a pixel
  number(0, 4);                              // not compressed
  number(row * image.height, 4);             // bytes of pixels
  for (int i = 0; i < 4; ++i) number(0, 4);  // resolution and palette: none
  for (std::size_t y = image.height; y-- > 0;) {
    for (std::size_t x = 0; x < image.width; ++x)
      for (std::size_t channel = 3; channel-- > 0;) file.push_back(image.at(channel, y, x));
    file.resize(file.size() + row - 3 * image.width);
  }
  return file;
}

/// The image with its names and probabilities.
inline std::string to_html(const ReportImage& image) {
  constexpr std::size_t largest_side = 192;  // twice what is shown, for displays with small pixels
  const auto percent = [](double fraction) {
    return "(" + chart_number(100 * fraction, 1, std::chars_format::fixed) + "%)";
  };
  const std::string label = escape_html(image.label), predicted = escape_html(image.predicted);
  const bool right = image.label == image.predicted;
  return "<figure class=\"image\"><img alt=\"" + label + "\" src=\"data:image/bmp;base64," +
         base64(to_bmp(shrink_to(to_rgb(image), largest_side))) + "\">\n<figcaption><b>" + label + "</b> " +
         percent(image.label_probability) + "<br><span class=\"" + (right ? "right" : "wrong") + "\">" +
         predicted + "</span> " + percent(image.predicted_probability) + "</figcaption></figure>\n";
}

}  // namespace detail
}  // namespace taut::train
