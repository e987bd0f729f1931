#pragma once
// `ImageFolder`: a directory with a sub-directory of image files for each class.

#include <algorithm>
#include <array>
#include <cctype>
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
#include "files.hpp"
#include "image.hpp"
#include "resize.hpp"

namespace taut::data {

/// What becomes of files that cannot be read as images.
enum class BadImages {
  fail,  ///< reading such a sample throws its `DataError`
  skip   ///< the set does without them: loading it decodes every file once, and lists those it left out
};

struct ImageFolderOptions {
  std::int64_t height = 224, width = 224;  ///< of the samples
  BadImages bad_images = BadImages::fail;  ///< what becomes of files that cannot be read as images
  ImageLimits limits = {};                 ///< what a file may ask for
};

namespace detail {

inline bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 3> endings{".png", ".jpg", ".jpeg"};
  return std::ranges::any_of(endings, [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::ranges::equal(name.substr(name.size() - ending.size()), ending, {},
                              [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  });
}

// An image file, by the directory that has it and its name; ordered as torchvision orders them.
using ImageFile = std::pair<std::string, std::string>;

// Appends the image files in a directory and in those within it. `depth` guards against links that lead back.
inline void find_images(const std::string& directory, std::vector<ImageFile>& found, int depth = 0) {
  if (depth > 32) throw DataError(directory, -1, "ImageFolder::load: the directories are nested too deeply");
  for (auto& name : list_directory(directory)) {
    const std::string path = directory + "/" + name;
    if (is_directory(path)) {
      find_images(path, found, depth + 1);
    } else if (is_image_name(name)) {
      found.emplace_back(directory, std::move(name));
    }
  }
}

}  // namespace detail

/// Images in a directory that has a sub-directory for each class: a `Dataset` of colour images of one size,
/// whose labels count the sub-directories' names in sorted order, as torchvision's `ImageFolder` does. An
/// image is a file, at any depth, whose name ends in .png, .jpg or .jpeg, in either case. Each is read and
/// decoded when it is asked for, and brought to the size by `crop_and_resize`. Copies share the list of
/// files.
class ImageFolder {
 public:
  /// Lists the classes and the files in `directory`. Throws `DataError` if it cannot be read, has no
  /// sub-directory, or one of these has no image; and `Error` if the size is not positive.
  static ImageFolder load(const std::string& directory, const ImageFolderOptions& options = {}) {
    if (options.height < 1 || options.width < 1) {
      throw Error("ImageFolder::load: expected a positive height and width, got " +
                  std::to_string(options.height) + " and " + std::to_string(options.width));
    }
    auto content = std::make_shared<Content>();
    content->options = options;
    for (auto& name : detail::list_directory(directory)) {
      if (detail::is_directory(directory + "/" + name)) content->classes.push_back(std::move(name));
    }
    if (content->classes.empty()) {
      throw DataError(directory, -1,
                      "ImageFolder::load: expected a sub-directory of images for each class, "
                      "found none");
    }
    for (std::size_t label = 0; label < content->classes.size(); ++label)
      content->add_class(directory, static_cast<std::int64_t>(label));
    if (content->files.empty())
      throw DataError(directory, -1,
                      "ImageFolder::load: no image can be decoded; the first error is: " +
                          std::string(content->skipped.front().what()));
    return ImageFolder(std::move(content));
  }

  /// The number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(content_->files.size()); }

  /// The shape of a sample: [3, height, width].
  Shape sample_shape() const { return {3, content_->options.height, content_->options.width}; }

  /// Writes an image, with pixels from 0 to 1, to `values`; returns its label. Throws `DataError` with its
  /// path if it cannot be decoded.
  std::int64_t get(std::int64_t index, std::span<float> values, Rng&) const {
    const auto& options = content_->options;
    crop_and_resize(read_image(path(index), options.limits), options.height, options.width, values);
    return label(index);
  }

  /// The file of an image.
  const std::string& path(std::int64_t index) const { return file(index).path; }

  /// The class of an image: its place in `classes()`.
  std::int64_t label(std::int64_t index) const { return file(index).label; }

  /// The names of the classes, which are those of the sub-directories, sorted by their bytes.
  const std::vector<std::string>& classes() const { return content_->classes; }

  /// What was wrong with each file that was skipped, with its path.
  const std::vector<DataError>& skipped() const { return content_->skipped; }

 private:
  struct File {
    std::string path;
    std::int64_t label;
  };

  struct Content {
    ImageFolderOptions options;
    std::vector<std::string> classes;
    std::vector<File> files;
    std::vector<DataError> skipped;

    void add_class(const std::string& directory, std::int64_t label) {
      const std::string place = directory + "/" + classes[static_cast<std::size_t>(label)];
      std::vector<detail::ImageFile> images;
      detail::find_images(place, images);
      if (images.empty()) {
        throw DataError(place, -1,
                        "ImageFolder::load: the class has no file that ends in .png, .jpg or .jpeg");
      }
      std::ranges::sort(images);
      for (const auto& [folder, name] : images) add_file({folder + "/" + name, label});
    }

    void add_file(File file) {
      if (options.bad_images == BadImages::skip) {
        try {
          read_image(file.path, options.limits);
        } catch (const DataError& error) {
          return skipped.push_back(error);
        }
      }
      files.push_back(std::move(file));
    }
  };

  explicit ImageFolder(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  const File& file(std::int64_t index) const {
    if (index >= 0 && index < size()) return content_->files[static_cast<std::size_t>(index)];
    throw Error("ImageFolder: expected an index from 0 to " + std::to_string(size() - 1) + ", got " +
                std::to_string(index));
  }

  std::shared_ptr<const Content> content_;
};

}  // namespace taut::data
