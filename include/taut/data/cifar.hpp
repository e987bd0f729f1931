#pragma once
// CIFAR-10 and CIFAR-100 in their binary version: colour images of 32 x 32 in 10 and in 100 classes.
//
// A file is records one after another and nothing else. A record is the label as one byte (in CIFAR-100 two:
// the label among 20 coarse classes, then that among the 100 fine ones) and 3072 bytes of pixels: the red,
// the green and the blue plane, each in row-major order.
//
// Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009, and the data sets'
// page, the section on the binary version's layout.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "byte_images.hpp"
#include "byte_source.hpp"
#include "files.hpp"

namespace taut::data {

/// The names of CIFAR-10's classes.
inline constexpr std::array<std::string_view, 10> cifar10_classes{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

/// The names of CIFAR-100's fine classes.
inline constexpr std::array<std::string_view, 100> cifar100_classes{
    "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
    "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
    "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
    "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
    "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
    "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
    "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
    "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
    "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
    "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
    "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
    "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
    "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
    "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
    "woman",      "worm"};

/// The mean and the standard deviation of each channel over the training images, whose pixels are from 0 to
/// 1: what `Normalize` takes.
inline constexpr std::array<float, 3> cifar10_mean{0.4914f, 0.4822f, 0.4465f};
inline constexpr std::array<float, 3> cifar10_std{0.2470f, 0.2435f, 0.2616f};
inline constexpr std::array<float, 3> cifar100_mean{0.5071f, 0.4865f, 0.4409f};
inline constexpr std::array<float, 3> cifar100_std{0.2673f, 0.2564f, 0.2762f};

namespace detail {

inline constexpr std::int64_t cifar_side = 32;
inline constexpr std::int64_t cifar_pixels = 3 * cifar_side * cifar_side;

// What distinguishes the two data sets.
struct CifarFormat {
  std::string name;
  std::string folder;                      // in which the archive has the files
  std::vector<std::string> train, test;    // the files
  std::vector<std::int64_t> label_bounds;  // the classes that each label byte counts; the last one is used
  std::string advice;                      // how to get the data

  std::span<const std::string> files(Split split) const { return split == Split::train ? train : test; }

  // `directory` itself, or the archive's folder in it if that has the files of `split`.
  std::string find(const std::string& directory, Split split) const {
    const std::string inner = directory + "/" + folder;
    const auto& first = files(split).front();
    return !path_exists(directory + "/" + first) && path_exists(inner + "/" + first) ? inner : directory;
  }

  bool is_present(const std::string& directory) const {
    return std::ranges::all_of(std::array{Split::train, Split::test}, [&](Split split) {
      const std::string place = find(directory, split);
      return std::ranges::all_of(files(split),
                                 [&](const auto& file) { return path_exists(place + "/" + file); });
    });
  }
};

inline CifarFormat cifar10_format(const std::string& directory) {
  return {
      "Cifar10",
      "cifar-10-batches-bin",
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
      {"test_batch.bin"},
      {10},
      "To get the data, run `sh examples/download.sh cifar-10 " + directory + "`"};
}

inline CifarFormat cifar100_format(const std::string& directory) {
  return {"Cifar100",
          "cifar-100-binary",
          {"train.bin"},
          {"test.bin"},
          {20, 100},
          "To get the data, unpack https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz in " + directory};
}

// The images of several files.
class CifarReader {
 public:
  explicit CifarReader(const CifarFormat& format)
      : format_(format), record_(format.label_bounds.size() + static_cast<std::size_t>(cifar_pixels)) {}

  void reserve(std::size_t images) {
    pixels_.reserve(images * static_cast<std::size_t>(cifar_pixels));
    labels_.reserve(images);
  }

  // Appends the images of a file.
  void read(const std::string& path) {
    FileSource file(path);
    std::int64_t offset = 0;
    while (const auto count = file.read(record_)) {
      if (count < record_.size()) {
        file.fail(offset + static_cast<std::int64_t>(count),
                  format_.name + "::load: the file is truncated: it ends within a record of " +
                      std::to_string(record_.size()) + " bytes");
      }
      append_record(file, offset);
      offset += static_cast<std::int64_t>(count);
    }
    if (offset == 0) file.fail(0, format_.name + "::load: the file is empty");
  }

  ByteImages images() && {
    return {format_.name, {3, cifar_side, cifar_side}, std::move(pixels_), std::move(labels_)};
  }

 private:
  void append_record(const FileSource& file, std::int64_t offset) {
    const auto& bounds = format_.label_bounds;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      if (record_[i] < bounds[i]) continue;
      file.fail(offset + static_cast<std::int64_t>(i), format_.name + "::load: expected a label from 0 to " +
                                                           std::to_string(bounds[i] - 1) + ", got " +
                                                           std::to_string(record_[i]));
    }
    const auto pixels = std::span(record_).subspan(bounds.size());
    labels_.push_back(record_[bounds.size() - 1]);
    pixels_.insert(pixels_.end(), pixels.begin(), pixels.end());
  }

  const CifarFormat& format_;
  std::vector<std::uint8_t> record_, pixels_, labels_;
};

inline ByteImages load_cifar(const CifarFormat& format, const std::string& directory, Split split) {
  const std::string place = format.find(directory, split);
  std::vector<std::string> paths;
  for (const auto& file : format.files(split))
    paths.push_back(require_file(format.name + "::load", place, std::span(&file, 1), format.advice));
  CifarReader reader(format);
  reader.reserve(split == Split::train ? 50'000 : 10'000);  // address space; what is not used costs no memory
  for (const auto& path : paths) reader.read(path);
  return std::move(reader).images();
}

}  // namespace detail

/// One split of CIFAR-10: a `Dataset` of colour images of shape [3, 32, 32] with labels 0 to 9.
class Cifar10 : public ByteImages {
 public:
  static constexpr std::int64_t side = detail::cifar_side;
  static constexpr std::int64_t pixels = detail::cifar_pixels;
  static constexpr std::int64_t classes = 10;

  /// Reads the files `data_batch_1.bin` to `data_batch_5.bin` or `test_batch.bin`, which are in `directory`
  /// or in its folder `cifar-10-batches-bin`. Each may have any number of images but none. Throws `DataError`
  /// if a file is missing, ends within an image, is empty, or has a label above 9.
  static Cifar10 load(const std::string& directory, Split split) {
    return Cifar10(detail::load_cifar(detail::cifar10_format(directory), directory, split));
  }

  /// Whether `directory` has the files of both splits.
  static bool is_present(const std::string& directory) {
    return detail::cifar10_format(directory).is_present(directory);
  }

 private:
  explicit Cifar10(ByteImages images) : ByteImages(std::move(images)) {}
};

/// One split of CIFAR-100: a `Dataset` of colour images of shape [3, 32, 32] with the fine labels 0 to 99.
class Cifar100 : public ByteImages {
 public:
  static constexpr std::int64_t side = detail::cifar_side;
  static constexpr std::int64_t pixels = detail::cifar_pixels;
  static constexpr std::int64_t classes = 100;

  /// Reads `train.bin` or `test.bin`, which is in `directory` or in its folder `cifar-100-binary`. Throws
  /// `DataError` as `Cifar10::load` does.
  static Cifar100 load(const std::string& directory, Split split) {
    return Cifar100(detail::load_cifar(detail::cifar100_format(directory), directory, split));
  }

  /// Whether `directory` has the files of both splits.
  static bool is_present(const std::string& directory) {
    return detail::cifar100_format(directory).is_present(directory);
  }

 private:
  explicit Cifar100(ByteImages images) : ByteImages(std::move(images)) {}
};

}  // namespace taut::data
