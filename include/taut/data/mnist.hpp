#pragma once
// MNIST and every data set published in its form: 28 x 28 grey images with ten classes, as four IDX files.

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"
#include "idx.hpp"

namespace taut::data {

/// The two parts of a data set: one to learn from, one to measure by.
enum class Split { train, test };

/// The names of MNIST's classes.
inline constexpr std::array<std::string_view, 10> mnist_classes{"0", "1", "2", "3", "4",
                                                                "5", "6", "7", "8", "9"};

/// The names of Fashion-MNIST's classes (H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image
/// Dataset for Benchmarking Machine Learning Algorithms", 2017, table 2).
inline constexpr std::array<std::string_view, 10> fashion_mnist_classes{
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};

/// Where Debian's package `dataset-fashion-mnist` installs Fashion-MNIST.
inline constexpr const char* fashion_mnist_directory = "/usr/share/datasets/fashion-mnist";

namespace detail {

inline bool path_exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// The names under which a file of MNIST is found: unpacked or not, and with the dot that some mirrors and
// unpacking programs put in place of the last but one dash.
inline std::array<std::string, 4> mnist_file_names(Split split, std::string_view kind, int rank) {
  const std::string stem = (split == Split::train ? "train-" : "t10k-") + std::string(kind);
  const std::string ending = "idx" + std::to_string(rank) + "-ubyte";
  return {stem + "-" + ending, stem + "." + ending, stem + "-" + ending + ".gz", stem + "." + ending + ".gz"};
}

// The path of the first of `names` that exists, or an empty string.
inline std::string find_file(const std::string& directory, std::span<const std::string> names) {
  for (const auto& name : names) {
    const std::string path = directory + "/" + name;
    if (path_exists(path)) return path;
  }
  return {};
}

inline std::string require_file(const std::string& directory, std::span<const std::string> names) {
  if (auto path = find_file(directory, names); !path.empty()) return path;
  std::string message = "Mnist::load: ";
  if (!path_exists(directory)) {
    message += "the directory does not exist";
  } else {
    message += "the directory has no file";
    for (const auto& name : names) message += (&name == names.data() ? " " : " or ") + name;
  }
  throw DataError(
      directory, -1,
      message + ". To get the data, run `sh examples/download.sh mnist " + directory +
          "` (or fashion-mnist for mnist); or install Debian's package dataset-fashion-mnist, which has " +
          fashion_mnist_directory);
}

}  // namespace detail

/// One split of MNIST or of a data set in its form, such as Fashion-MNIST: a `Dataset` of grey images of
/// shape [1, 28, 28] with labels 0 to 9. The bytes stay as they are in memory, shared by all copies.
class Mnist {
 public:
  static constexpr std::int64_t side = 28;
  static constexpr std::int64_t pixels = side * side;
  static constexpr std::int64_t classes = 10;

  /// Reads the images and labels of `split` from the four canonical files' directory. Each file may be
  /// compressed with gzip (then its name ends in `.gz`), and may have a dot before `idx` for the dash.
  /// Throws `DataError` if a file is missing or damaged, the images are not of 28 x 28, there are not as
  /// many labels as images, or a label is above 9.
  static Mnist load(const std::string& directory, Split split) {
    const auto image_names = detail::mnist_file_names(split, "images", 3);
    const auto label_names = detail::mnist_file_names(split, "labels", 1);
    const auto image_path = detail::require_file(directory, image_names);
    const auto label_path = detail::require_file(directory, label_names);
    auto images = read_idx(image_path);
    check_images(images, image_path);
    auto labels = read_idx(label_path);
    check_labels(labels, label_path, images.shape[0], image_path);
    return Mnist(std::make_shared<const Bytes>(Bytes{std::move(images.values), std::move(labels.values)}));
  }

  /// Whether `directory` has a file for the images and the labels of both splits.
  static bool is_present(const std::string& directory) {
    const auto has = [&](Split split, std::string_view kind, int rank) {
      return !detail::find_file(directory, detail::mnist_file_names(split, kind, rank)).empty();
    };
    const auto has_split = [&](Split split) { return has(split, "images", 3) && has(split, "labels", 1); };
    return has_split(Split::train) && has_split(Split::test);
  }

  /// The number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_->labels.size()); }

  /// The shape of an image: [channels, height, width].
  Shape sample_shape() const { return {1, side, side}; }

  /// Writes the pixels of an image, divided by 255 and so from 0 to 1, to `values`; returns its label.
  std::int64_t get(std::int64_t index, std::span<float> values, Rng&) const {
    std::ranges::transform(image(index), values.begin(),
                           [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0f; });
    return label(index);
  }

  /// The pixels of an image in row-major order: 0 is the background, 255 the ink.
  std::span<const std::uint8_t> image(std::int64_t index) const {
    check_index(index);
    return std::span(bytes_->pixels).subspan(static_cast<std::size_t>(index * pixels), pixels);
  }

  /// The class of an image, 0 to 9.
  std::int64_t label(std::int64_t index) const {
    check_index(index);
    return bytes_->labels[static_cast<std::size_t>(index)];
  }

 private:
  struct Bytes {
    std::vector<std::uint8_t> pixels, labels;
  };

  explicit Mnist(std::shared_ptr<const Bytes> bytes) : bytes_(std::move(bytes)) {}

  static void check_images(const Idx& images, const std::string& path) {
    const auto& shape = images.shape;
    if (shape.rank() == 3 && shape[1] == side && shape[2] == side) return;
    throw DataError(path, 4,
                    "Mnist::load: expected images of shape [count, 28, 28], got " + to_string(shape));
  }

  static void check_labels(const Idx& labels, const std::string& path, std::int64_t images,
                           const std::string& image_path) {
    const auto& shape = labels.shape;
    if (shape.rank() != 1) {
      throw DataError(path, 3, "Mnist::load: expected labels of shape [count], got " + to_string(shape));
    }
    if (shape[0] != images) {
      throw DataError(path, 4,
                      "Mnist::load: expected one label for each of the " + std::to_string(images) +
                          " images in " + image_path + ", got " + std::to_string(shape[0]));
    }
    const auto wrong = std::ranges::find_if(labels.values, [](int label) { return label >= classes; });
    if (wrong == labels.values.end()) return;
    constexpr std::int64_t header_size = 8;
    throw DataError(path, header_size + (wrong - labels.values.begin()),
                    "Mnist::load: expected labels from 0 to 9, got " + std::to_string(*wrong));
  }

  void check_index(std::int64_t index) const {
    if (index >= 0 && index < size()) return;
    throw Error("Mnist: expected an index from 0 to " + std::to_string(size() - 1) + ", got " +
                std::to_string(index));
  }

  std::shared_ptr<const Bytes> bytes_;
};

}  // namespace taut::data
