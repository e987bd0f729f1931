#pragma once
// Random changes to training images, made as the images are read and so in the loader's worker threads.
//
//     const data::Augmented training{data::Cifar10::load(directory, data::Split::train),
//                                    data::RandomCrop{4}, data::HorizontalFlip{},
//                                    data::Normalize{data::cifar10_mean, data::cifar10_std}};
//     data::DataLoader loader{training, {.batch_size = 128}};
//
// A transform changes one sample in place. It draws from the generator that it is given and from nothing
// else, so what a sample becomes depends on the loader's seed, the epoch and the sample's index only. To
// measure a model, leave out the random ones.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"
#include "dataset.hpp"

namespace taut::data {

/// What changes a sample in place: `transform(values, shape, rng)` with `shape.size()` values in row-major
/// order. A function object or a lambda will do. If there is also `transform.check(shape)`, it throws for
/// samples and options that the transform is not for, and `Augmented` calls it once.
template <class F>
concept Transform = requires(const F& transform, std::span<float> values, const Shape& shape, Rng& rng) {
  transform(values, shape, rng);
};

namespace detail {

inline void check_image(std::string_view transform, const Shape& shape) {
  require(shape.rank() == 3 && shape.size() > 0, transform,
          "expected images of shape [channels, height, width], got", shape);
}

void check_option(std::string_view transform, bool ok, const std::string& expected, auto value) {
  if (!ok) taut::detail::throw_error(transform, "expected " + expected + ", got " + std::to_string(value));
}

// Moves what is at (y + dy, x + dx) to (y, x), and zero to where that is outside the image.
inline void shift_plane(float* plane, std::int64_t height, std::int64_t width, std::int64_t dy,
                        std::int64_t dx) {
  const auto first = std::clamp<std::int64_t>(-dx, 0, width);  // the columns that something moves to
  const auto last = std::clamp<std::int64_t>(width - dx, 0, width);
  for (std::int64_t i = 0; i < height; ++i) {
    const auto y = dy >= 0 ? i : height - 1 - i;  // so that no row is written before it has been read
    float* const row = plane + y * width;
    if (y + dy < 0 || y + dy >= height || first >= last) {
      std::fill_n(row, width, 0.0f);
      continue;
    }
    const float* const source = plane + (y + dy) * width;
    std::memmove(row + first, source + first + dx, static_cast<std::size_t>(last - first) * sizeof(float));
    std::fill(row, row + first, 0.0f);
    std::fill(row + last, row + width, 0.0f);
  }
}

}  // namespace detail

/// Surrounds an image [channels, height, width] by `padding` zeros on each side and cuts out a window of the
/// image's size, all (2 padding + 1)^2 places being equally likely. The same as torchvision's
/// `RandomCrop(size, padding)` with the size of the image. Zero is black before `Normalize`, the mean colour
/// after it.
struct RandomCrop {
  std::int64_t padding = 4;

  void check(const Shape& shape) const {
    detail::check_image("RandomCrop", shape);
    detail::check_option("RandomCrop", padding >= 0, "a padding of at least 0", padding);
  }

  /// How far down and to the right of the image's corner that of the window is.
  std::array<std::int64_t, 2> draw(Rng& rng) const {
    const auto places = static_cast<std::uint64_t>(2 * padding + 1);
    const auto dy = static_cast<std::int64_t>(rng.integer(places)) - padding;
    const auto dx = static_cast<std::int64_t>(rng.integer(places)) - padding;
    return {dy, dx};
  }

  void operator()(std::span<float> values, const Shape& shape, Rng& rng) const {
    const auto [dy, dx] = draw(rng);
    const auto height = shape[1], width = shape[2];
    for (std::int64_t channel = 0; channel < shape[0]; ++channel)
      detail::shift_plane(values.data() + channel * height * width, height, width, dy, dx);
  }
};

/// Mirrors an image [channels, height, width], left to right, with probability `p`. The same as torchvision's
/// `RandomHorizontalFlip`.
struct HorizontalFlip {
  double p = 0.5;

  void check(const Shape& shape) const {
    detail::check_image("HorizontalFlip", shape);
    detail::check_option("HorizontalFlip", p >= 0 && p <= 1, "a probability from 0 to 1", p);
  }

  /// Whether an image is mirrored.
  bool draw(Rng& rng) const { return rng.uniform() < p; }

  void operator()(std::span<float> values, const Shape& shape, Rng& rng) const {
    if (!draw(rng)) return;
    const auto width = static_cast<std::ptrdiff_t>(shape[2]);
    for (auto row = values.begin(); row != values.end(); row += width) std::reverse(row, row + width);
  }
};

/// Sets a square of `size` x `size` pixels of an image [channels, height, width] to zero in all channels. Its
/// centre is equally likely to be any pixel, so parts of the square may be outside. Put it behind
/// `Normalize`, where zero is the mean colour, as in the source: T. DeVries, G. Taylor, "Improved
/// Regularization of Convolutional Neural Networks with Cutout", 2017.
struct Cutout {
  std::int64_t size = 16;

  void check(const Shape& shape) const {
    detail::check_image("Cutout", shape);
    detail::check_option("Cutout", size >= 0, "a size of at least 0", size);
  }

  void operator()(std::span<float> values, const Shape& shape, Rng& rng) const {
    const auto [top, bottom] = range(shape[1], rng);
    const auto [left, right] = range(shape[2], rng);
    for (std::int64_t channel = 0; channel < shape[0]; ++channel) {
      float* const plane = values.data() + channel * shape[1] * shape[2];
      for (auto y = top; y < bottom; ++y)
        std::fill(plane + y * shape[2] + left, plane + y * shape[2] + right, 0.0f);
    }
  }

 private:
  std::pair<std::int64_t, std::int64_t> range(std::int64_t extent, Rng& rng) const {
    const auto begin = static_cast<std::int64_t>(rng.integer(static_cast<std::uint64_t>(extent))) - size / 2;
    return {std::max<std::int64_t>(begin, 0), std::min(begin + size, extent)};
  }
};

/// Makes each channel of a sample [channels, ...] have about zero mean and unit variance: x becomes
/// (x - mean) / std with the channel's mean and standard deviation. Draws nothing: it belongs to measuring
/// too. The same as torchvision's `Normalize`.
class Normalize {
 public:
  /// One mean and one standard deviation a channel. Throws `Error` if there are not as many of each, or a
  /// standard deviation is not positive.
  Normalize(std::vector<float> mean, std::vector<float> deviation)
      : mean_(std::move(mean)), deviation_(std::move(deviation)) {
    if (mean_.size() != deviation_.size()) {
      throw Error("Normalize: expected as many means as standard deviations, got " +
                  std::to_string(mean_.size()) + " and " + std::to_string(deviation_.size()));
    }
    for (const float value : deviation_)
      detail::check_option("Normalize", value > 0, "positive standard deviations", value);
  }

  /// The same from constants such as `cifar10_mean` and `cifar10_std`.
  template <std::size_t channels>
  Normalize(const std::array<float, channels>& mean, const std::array<float, channels>& deviation)
      : Normalize(std::vector<float>(mean.begin(), mean.end()),
                  std::vector<float>(deviation.begin(), deviation.end())) {}

  void check(const Shape& shape) const {
    if (shape.rank() > 0 && shape[0] == static_cast<std::int64_t>(mean_.size())) return;
    throw ShapeError("Normalize: expected samples of " + std::to_string(mean_.size()) +
                     " channels, one for each mean, got " + to_string(shape));
  }

  void operator()(std::span<float> values, const Shape&, Rng&) const {
    const auto size = values.size() / mean_.size();
    for (std::size_t channel = 0; channel < mean_.size(); ++channel) {
      const float mean = mean_[channel], deviation = deviation_[channel];
      for (float& x : values.subspan(channel * size, size)) x = (x - mean) / deviation;
    }
  }

  /// The channels' means and standard deviations.
  const std::vector<float>& mean() const { return mean_; }
  const std::vector<float>& deviation() const { return deviation_; }

 private:
  std::vector<float> mean_, deviation_;
};

/// A data set whose samples go through transforms, in the order in which they are given. Itself a `Dataset`.
template <Dataset D, Transform... Transforms> class Augmented {
 public:
  /// Throws `ShapeError` or `Error` if the samples are not of a shape that a transform takes, or an option of
  /// a transform is out of its range.
  explicit Augmented(D dataset, Transforms... transforms)
      : dataset_(std::move(dataset)), transforms_(std::move(transforms)...) {
    const Shape shape = sample_shape();
    std::apply([&](const auto&... transform) { (check(transform, shape), ...); }, transforms_);
  }

  /// The number of samples.
  std::int64_t size() const { return dataset_.size(); }

  /// The shape of a sample; the transforms keep it.
  Shape sample_shape() const { return dataset_.sample_shape(); }

  /// Writes the transformed sample to `values`; returns its label.
  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    const std::int64_t label = dataset_.get(index, values, rng);
    const Shape shape = sample_shape();
    std::apply([&](const auto&... transform) { (transform(values, shape, rng), ...); }, transforms_);
    return label;
  }

  /// The samples as they were.
  const D& dataset() const { return dataset_; }

  /// What is done to them.
  const std::tuple<Transforms...>& transforms() const { return transforms_; }

 private:
  template <class F> static void check(const F& transform, const Shape& shape) {
    if constexpr (requires { transform.check(shape); }) transform.check(shape);
  }

  D dataset_;
  std::tuple<Transforms...> transforms_;
};

}  // namespace taut::data
