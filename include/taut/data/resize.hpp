#pragma once
// Images of any size to samples of one size.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "image.hpp"

namespace taut::data {
namespace detail {

// The pixels of a line that an output pixel is made of, from `first` on, and their weights, whose sum is 1.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;

  std::int64_t end() const { return first + static_cast<std::int64_t>(weights.size()); }
};

// The taps of `count` output pixels that lie evenly over the length [begin, begin + scale count) of a line of
// `extent` pixels. The weight of a pixel falls linearly to zero at the distance of one pixel, or of `scale`
// if that is more.
inline std::vector<Taps> bilinear_taps(std::int64_t extent, double begin, double scale, std::int64_t count) {
  const double support = std::max(1.0, scale);
  std::vector<Taps> taps(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto end = std::min(static_cast<std::int64_t>(centre + support + 0.5), extent);
    std::vector<double> weights;
    double sum = 0;
    for (auto pixel = first; pixel < end; ++pixel) {
      const double distance = std::abs(static_cast<double>(pixel) + 0.5 - centre);
      weights.push_back(std::max(0.0, 1 - distance / support));
      sum += weights.back();
    }
    auto& out = taps[static_cast<std::size_t>(i)];
    out.first = first;
    for (const double weight : weights) out.weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

// The rows of `image` from `top` on, each of 3 bytes a pixel, scaled to taps.size() pixels and split into
// [3, rows, taps.size()].
inline std::vector<float> scale_rows(const Image& image, std::int64_t top, std::int64_t rows,
                                     std::span<const Taps> taps) {
  std::vector<float> scaled(3 * static_cast<std::size_t>(rows) * taps.size());
  const auto plane = static_cast<std::size_t>(rows) * taps.size();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const auto start = (static_cast<std::size_t>(top) + row) * static_cast<std::size_t>(image.width);
    for (std::size_t x = 0; x < taps.size(); ++x) {
      const std::uint8_t* pixel = image.pixels.data() + 3 * (start + static_cast<std::size_t>(taps[x].first));
      float sum[3] = {};
      for (const float weight : taps[x].weights) {
        for (int channel = 0; channel < 3; ++channel) sum[channel] += weight * static_cast<float>(*pixel++);
      }
      for (std::size_t channel = 0; channel < 3; ++channel)
        scaled[channel * plane + row * taps.size() + x] = sum[channel];
    }
  }
  return scaled;
}

}  // namespace detail

/// Cuts out the largest centred rectangle that has the proportions of `height` to `width`, scales it to that
/// size and writes it to `values` as [3, height, width] with pixels from 0 to 1. Scaling is bilinear, by
/// weights that fall linearly over one pixel, or where the image shrinks over the scale: as Pillow's and,
/// with antialiasing, torchvision's. An image of the right size stays as it is. Throws `Error` if the size is
/// not positive, the image has no pixels, or `values` has another length.
inline void crop_and_resize(const Image& image, std::int64_t height, std::int64_t width,
                            std::span<float> values) {
  if (height < 1 || width < 1 || image.height < 1 || image.width < 1 ||
      static_cast<std::int64_t>(values.size()) != 3 * height * width) {
    throw Error("crop_and_resize: expected images of at least one pixel and 3 x height x width values, got " +
                std::to_string(image.height) + " x " + std::to_string(image.width) + " pixels to make " +
                std::to_string(height) + " x " + std::to_string(width) + " in " +
                std::to_string(values.size()) + " values");
  }
  const auto rows = static_cast<double>(height), columns = static_cast<double>(width);
  const auto image_rows = static_cast<double>(image.height), image_columns = static_cast<double>(image.width);
  const double scale = std::min(image_rows / rows, image_columns / columns);
  const double top = (image_rows - scale * rows) / 2, left = (image_columns - scale * columns) / 2;
  const auto vertical = detail::bilinear_taps(image.height, top, scale, height);
  const auto horizontal = detail::bilinear_taps(image.width, left, scale, width);

  const auto first = vertical.front().first, count = vertical.back().end() - first;
  const auto scaled = detail::scale_rows(image, first, count, horizontal);
  const auto row_size = static_cast<std::size_t>(width);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const float* const plane = scaled.data() + channel * static_cast<std::size_t>(count) * row_size;
    for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
      const auto out = values.subspan((channel * static_cast<std::size_t>(height) + y) * row_size, row_size);
      std::ranges::fill(out, 0.0f);
      const float* row = plane + static_cast<std::size_t>(vertical[y].first - first) * row_size;
      for (const float weight : vertical[y].weights) {
        for (std::size_t x = 0; x < row_size; ++x) out[x] += weight * row[x];
        row += row_size;
      }
      for (float& value : out) value /= 255.0f;
    }
  }
}

}  // namespace taut::data
