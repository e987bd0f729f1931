#pragma once
// MNIST and every data set published in its form: 28 x 28 grey images with ten classes, as four IDX files.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "byte_images.hpp"
#include "files.hpp"
#include "idx.hpp"

namespace taut::data {

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

// The names under which a file of MNIST is found: unpacked or not, and with the dot that some mirrors and
// unpacking programs put in place of the last but one dash.
inline std::array<std::string, 4> mnist_file_names(Split split, std::string_view kind, int rank) {
  const std::string stem = (split == Split::train ? "train-" : "t10k-") + std::string(kind);
  const std::string ending = "idx" + std::to_string(rank) + "-ubyte";
  return {stem + "-" + ending, stem + "." + ending, stem + "-" + ending + ".gz", stem + "." + ending + ".gz"};
}

inline std::string require_mnist_file(const std::string& directory, Split split, std::string_view kind,
                                      int rank) {
  return require_file("Mnist::load", directory, mnist_file_names(split, kind, rank),
                      "To get the data, run `sh examples/download.sh mnist " + directory +
                          "` (or fashion-mnist for mnist); or install Debian's package "
                          "dataset-fashion-mnist, which has " +
                          fashion_mnist_directory);
}

}  // namespace detail

/// One split of MNIST or of a data set in its form, such as Fashion-MNIST: a `Dataset` of grey images of
/// shape [1, 28, 28] with labels 0 to 9. In `image` 0 is the background, 255 the ink.
class Mnist : public ByteImages {
 public:
  static constexpr std::int64_t side = 28;
  static constexpr std::int64_t pixels = side * side;
  static constexpr std::int64_t classes = 10;

  /// Reads the images and labels of `split` from the four canonical files' directory. Each file may be
  /// compressed with gzip (then its name ends in `.gz`), and may have a dot before `idx` for the dash.
  /// Throws `DataError` if a file is missing or damaged, the images are not of 28 x 28, there are not as
  /// many labels as images, or a label is above 9.
  static Mnist load(const std::string& directory, Split split) {
    const auto image_path = detail::require_mnist_file(directory, split, "images", 3);
    const auto label_path = detail::require_mnist_file(directory, split, "labels", 1);
    auto images = read_idx(image_path);
    check_images(images, image_path);
    auto labels = read_idx(label_path);
    check_labels(labels, label_path, images.shape[0], image_path);
    return Mnist({"Mnist", {1, side, side}, std::move(images.values), std::move(labels.values)});
  }

  /// Whether `directory` has a file for the images and the labels of both splits.
  static bool is_present(const std::string& directory) {
    const auto has = [&](Split split, std::string_view kind, int rank) {
      return !detail::find_file(directory, detail::mnist_file_names(split, kind, rank)).empty();
    };
    const auto has_split = [&](Split split) { return has(split, "images", 3) && has(split, "labels", 1); };
    return has_split(Split::train) && has_split(Split::test);
  }

 private:
  explicit Mnist(ByteImages images) : ByteImages(std::move(images)) {}

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
};

}  // namespace taut::data
