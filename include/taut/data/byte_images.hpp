#pragma once
// `ByteImages`: what data sets of small images, such as MNIST and CIFAR-10, have in common.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"

namespace taut::data {

/// The two parts of a data set: one to learn from, one to measure by.
enum class Split { train, test };

/// Labelled images of one shape [channels, height, width] with a byte a pixel and channel: a `Dataset`. The
/// bytes stay as they are in memory, shared by all copies.
class ByteImages {
 public:
  /// `pixels` are the images one after another, each in row-major order; `labels` has one for each image.
  /// Error messages begin with `name`. Throws `Error` if there are more or fewer pixels than the labels ask
  /// for.
  ByteImages(std::string name, const Shape& shape, std::vector<std::uint8_t> pixels,
             std::vector<std::uint8_t> labels)
      : shape_(shape),
        bytes_(std::make_shared<const Bytes>(Bytes{std::move(name), std::move(pixels), std::move(labels)})) {
    if (bytes_->pixels.size() == bytes_->labels.size() * image_size()) return;
    throw Error(bytes_->name + ": expected " + to_string(shape_) + " pixels for each of the " +
                std::to_string(size()) + " labels, got " + std::to_string(bytes_->pixels.size()) + " in all");
  }

  /// The number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_->labels.size()); }

  /// The shape of an image: [channels, height, width].
  Shape sample_shape() const { return shape_; }

  /// Writes the pixels of an image, divided by 255 and so from 0 to 1, to `values`; returns its label.
  std::int64_t get(std::int64_t index, std::span<float> values, Rng&) const {
    std::ranges::transform(image(index), values.begin(),
                           [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0f; });
    return label(index);
  }

  /// The pixels of an image in row-major order.
  std::span<const std::uint8_t> image(std::int64_t index) const {
    check_index(index);
    return std::span(bytes_->pixels).subspan(static_cast<std::size_t>(index) * image_size(), image_size());
  }

  /// The pixels of all images, one after another.
  std::span<const std::uint8_t> pixels() const { return bytes_->pixels; }

  /// The class of an image, from 0.
  std::int64_t label(std::int64_t index) const {
    check_index(index);
    return bytes_->labels[static_cast<std::size_t>(index)];
  }

 private:
  struct Bytes {
    std::string name;
    std::vector<std::uint8_t> pixels, labels;
  };

  std::size_t image_size() const { return static_cast<std::size_t>(shape_.size()); }

  void check_index(std::int64_t index) const {
    if (index >= 0 && index < size()) return;
    throw Error(bytes_->name + ": expected an index from 0 to " + std::to_string(size() - 1) + ", got " +
                std::to_string(index));
  }

  Shape shape_;
  std::shared_ptr<const Bytes> bytes_;
};

}  // namespace taut::data
