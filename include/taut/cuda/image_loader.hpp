#pragma once
// `cuda::ImageLoader`: batches of a data set of images that lies on the device, as bytes.
//
//     const data::Augmented training{data::Cifar10::load(directory, data::Split::train),
//                                    data::RandomCrop{4}, data::HorizontalFlip{},
//                                    data::Normalize{data::cifar10_mean, data::cifar10_std}};
//     cuda::ImageLoader loader{training, {.batch_size = 128}};
//
// The host only draws what is random; a kernel crops, flips and normalises (cuda/augment.cu). It stands for
// `data::DataLoader`, with the same options, and gives the same batches for the same seed.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "../data/augment.hpp"
#include "../data/byte_images.hpp"
#include "../data/data_loader.hpp"
#include "augment_launch.hpp"
#include "tensor.hpp"

namespace taut::cuda {

namespace detail {

inline const data::ByteImages& images_of(const data::ByteImages& images) { return images; }
template <std::derived_from<data::ByteImages> D, class... Transforms>
const data::ByteImages& images_of(const data::Augmented<D, Transforms...>& augmented) {
  return augmented.dataset();
}

inline std::tuple<> transforms_of(const data::ByteImages&) { return {}; }
template <std::derived_from<data::ByteImages> D, class... Transforms>
const std::tuple<Transforms...>& transforms_of(const data::Augmented<D, Transforms...>& augmented) {
  return augmented.transforms();
}

/// The place of a transform in what the kernel does; 0 if it has none.
template <class F> inline constexpr int kernel_stage = 0;
template <> inline constexpr int kernel_stage<data::RandomCrop> = 1;
template <> inline constexpr int kernel_stage<data::HorizontalFlip> = 2;
template <> inline constexpr int kernel_stage<data::Normalize> = 3;

template <class... Transforms> consteval bool in_kernel_order(const std::tuple<Transforms...>*) {
  [[maybe_unused]] int before = 0;
  return ((before < kernel_stage<Transforms> && (before = kernel_stage<Transforms>, true)) && ...);
}

/// What is drawn for an image, as the elements of a sample.
enum Drawn : std::size_t { drawn_dy, drawn_dx, drawn_mirrored, drawn_count };

inline void draw(const data::RandomCrop& crop, Rng& rng, std::span<float> values) {
  const auto [dy, dx] = crop.draw(rng);
  values[drawn_dy] = static_cast<float>(dy);
  values[drawn_dx] = static_cast<float>(dx);
}
inline void draw(const data::HorizontalFlip& flip, Rng& rng, std::span<float> values) {
  values[drawn_mirrored] = flip.draw(rng) ? 1.0f : 0.0f;
}
inline void draw(const data::Normalize&, Rng&, std::span<float>) {}

/// What is drawn for the images of a data set, as a data set of its own: a loader of it draws for each image
/// what a loader of the images would.
template <class D> class DrawnWindows {
 public:
  explicit DrawnWindows(D dataset) : dataset_(std::move(dataset)) {}

  std::int64_t size() const { return dataset_.size(); }
  Shape sample_shape() const { return {static_cast<std::int64_t>(drawn_count)}; }

  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    std::fill(values.begin(), values.end(), 0.0f);
    std::apply([&](const auto&... transform) { (draw(transform, rng, values), ...); },
               transforms_of(dataset_));
    return images_of(dataset_).label(index);
  }

  const D& dataset() const { return dataset_; }

 private:
  D dataset_;
};

/// Means and standard deviations of the channels: those of a transform that normalises, else 0 and 1.
inline void set_statistics(const data::Normalize& normalize, std::vector<float>& statistics) {
  const auto end = std::copy(normalize.mean().begin(), normalize.mean().end(), statistics.begin());
  std::copy(normalize.deviation().begin(), normalize.deviation().end(), end);
}
inline void set_statistics(const auto&, std::vector<float>&) {}

/// A data set's images on the device, and how they are normalised.
struct DeviceImages {
  Shape shape;  ///< of an image
  BasicCudaTensor<std::uint8_t> pixels;
  CudaTensor statistics;

  template <class D> explicit DeviceImages(const D& dataset) : shape(dataset.sample_shape()) {
    require(shape.rank() == 3, "ImageLoader: expected images of shape [channels, height, width], got", shape);
    std::vector<float> values(static_cast<std::size_t>(2 * shape[0]), 0.0f);
    std::fill(values.begin() + shape[0], values.end(), 1.0f);
    std::apply([&](const auto&... transform) { (set_statistics(transform, values), ...); },
               transforms_of(dataset));
    statistics = CudaTensor::from_host(values, {2, shape[0]});
    const std::span<const std::uint8_t> bytes = images_of(dataset).pixels();
    pixels = BasicCudaTensor<std::uint8_t>::from_host(bytes, {static_cast<std::int64_t>(bytes.size())});
    synchronize(current_stream());  // batches may be made in other streams
  }

  ImageBytes bytes() const {
    return {pixels.data(), shape[0], static_cast<std::int32_t>(shape[1]),
            static_cast<std::int32_t>(shape[2])};
  }
};

}  // namespace detail

/// A data set of images as bytes, as it is or with a crop, a flip and a normalisation, in this order, each of
/// which may be missing.
template <class D>
concept DeviceAugmentable = data::Dataset<D> && requires(const D& dataset) {
  detail::images_of(dataset);
  requires detail::in_kernel_order(
      static_cast<std::remove_cvref_t<decltype(detail::transforms_of(dataset))>*>(nullptr));
};

/// A batch of B images, which are made on the device when they are asked for. Its spans are views into a
/// buffer of the loader, and are valid until the iterator that gave the batch advances or is destroyed.
class ImageBatch {
 public:
  ImageBatch() = default;
  ImageBatch(std::shared_ptr<const detail::DeviceImages> images, const data::Batch& drawn)
      : labels(drawn.labels),
        samples(drawn.samples),
        index(drawn.index),
        images_(std::move(images)),
        drawn_(drawn.values) {}

  std::span<const std::int64_t> labels;   ///< B labels
  std::span<const std::int64_t> samples;  ///< the B indices of the images in the data set
  std::int64_t index = 0;                 ///< the number of this batch in its epoch, from 0

  /// B, the number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }

  /// The images as a tensor of shape [B, channels, height, width] on the device.
  template <class T> T tensor() const {
    if constexpr (requires { typename T::Inner; }) {
      return T(tensor<typename T::Inner>());
    } else {
      static_assert(is_tensor<T>, "ImageBatch::tensor: the images are on the device, as a BasicCudaTensor");
      Shape shape{size()};
      for (const auto extent : images_->shape) shape.push_back(extent);
      auto to = T::uninitialized(shape);
      const std::vector<ImageWindow> host = windows();
      const std::size_t bytes = host.size() * sizeof(ImageWindow);
      const Buffer buffer = Buffer::allocate(bytes);
      upload(buffer.data(), host.data(), bytes, current_stream());
      launch_augment(images_->bytes(), size(), reinterpret_cast<const ImageWindow*>(buffer.data()),
                     images_->statistics.data(), to.mutable_data(), current_stream());
      return to;
    }
  }

  /// The labels as a tensor of integers, `T::Index`, of shape [B].
  template <class T> typename T::Index targets() const { return T::Index::from_host(labels, Shape{size()}); }

 private:
  std::vector<ImageWindow> windows() const {
    std::vector<ImageWindow> windows;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto drawn = drawn_.subspan(i * detail::drawn_count, detail::drawn_count);
      windows.push_back({samples[i], static_cast<std::int32_t>(drawn[detail::drawn_dy]),
                         static_cast<std::int32_t>(drawn[detail::drawn_dx]),
                         drawn[detail::drawn_mirrored] != 0});
    }
    return windows;
  }

  std::shared_ptr<const detail::DeviceImages> images_;
  std::span<const float> drawn_;
};

/// Steps through the batches of an epoch, as `data::BatchIterator` does.
class ImageBatchIterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = ImageBatch;
  using difference_type = std::ptrdiff_t;

  ImageBatchIterator(std::shared_ptr<const detail::DeviceImages> images, data::BatchIterator drawn)
      : images_(std::move(images)), drawn_(std::move(drawn)), batch_(images_, *drawn_) {}

  const ImageBatch& operator*() const { return batch_; }
  const ImageBatch* operator->() const { return &batch_; }

  /// Goes to the next batch; the one before is no longer valid.
  ImageBatchIterator& operator++() {
    ++drawn_;
    batch_ = ImageBatch(images_, *drawn_);
    return *this;
  }
  void operator++(int) { ++*this; }

  bool operator==(std::default_sentinel_t end) const { return drawn_ == end; }

 private:
  std::shared_ptr<const detail::DeviceImages> images_;
  data::BatchIterator drawn_;
  ImageBatch batch_;
};

/// The batches of one epoch, or of the rest of one, as `data::Epoch`. It may outlive its loader.
class ImageEpoch {
 public:
  ImageEpoch(std::shared_ptr<const detail::DeviceImages> images, data::Epoch drawn)
      : images_(std::move(images)), drawn_(std::move(drawn)) {}

  ImageBatchIterator begin() const { return {images_, drawn_.begin()}; }
  std::default_sentinel_t end() const { return {}; }

  /// The number of batches.
  std::int64_t size() const { return drawn_.size(); }

 private:
  std::shared_ptr<const detail::DeviceImages> images_;
  data::Epoch drawn_;
};

/// Gives a data set's images as batches that are made on the device, of bytes that lie there: the batches
/// that `data::DataLoader` would give with the same options, in the same orders and, as floats, of the same
/// bits. Workers draw ahead what is random. The loader is used by one thread, with the device that is current
/// when it is made.
template <DeviceAugmentable D> class ImageLoader {
 public:
  /// Copies the images to the device. Throws `Error` if an option is out of its range, `ShapeError` if the
  /// images are not [channels, height, width], and `DeviceError` if there is no memory for them.
  explicit ImageLoader(D dataset, data::DataLoaderOptions options = {})
      : drawn_(detail::DrawnWindows<D>(std::move(dataset)), options),
        images_(std::make_shared<const detail::DeviceImages>(this->dataset())) {}

  /// Starts the next epoch.
  ImageBatchIterator begin() { return {images_, drawn_.begin()}; }
  std::default_sentinel_t end() const { return {}; }

  /// Epoch number `index`, from its batch `start_batch` on, as `data::DataLoader::epoch`.
  ImageEpoch epoch(std::int64_t index, std::int64_t start_batch = 0) const {
    return {images_, drawn_.epoch(index, start_batch)};
  }

  /// The number of batches in an epoch.
  std::int64_t batches_per_epoch() const { return drawn_.batches_per_epoch(); }

  const D& dataset() const { return drawn_.dataset().dataset(); }
  const data::DataLoaderOptions& options() const { return drawn_.options(); }

 private:
  data::DataLoader<detail::DrawnWindows<D>> drawn_;
  std::shared_ptr<const detail::DeviceImages> images_;
};

}  // namespace taut::cuda
