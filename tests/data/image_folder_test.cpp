#include <taut/data/image_folder.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <taut/data/augment.hpp>
#include <taut/data/data_loader.hpp>

#include "idx_bytes.hpp"
#include "image_fixtures.hpp"

namespace taut::data {
namespace {

using namespace taut::test;

static_assert(Dataset<ImageFolder>);

// Puts the image `fixture` at `path` in a directory, and makes the directories on the way.
void place(const TemporaryDirectory& directory, const std::string& fixture, const std::string& path) {
  const std::filesystem::path target = directory / path;
  std::filesystem::create_directories(target.parent_path());
  std::filesystem::copy_file(image_path(fixture), target);
}

// Expects that `run` throws a `DataError` of `path` whose message has `text`.
void expect_error(const std::function<void()>& run, const std::string& path, const std::string& text) {
  try {
    run();
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), path) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

std::vector<std::string> paths_of(const ImageFolder& folder, const std::string& directory) {
  std::vector<std::string> paths;
  for (std::int64_t i = 0; i < folder.size(); ++i)
    paths.push_back(folder.path(i).substr(directory.size() + 1));
  return paths;
}

TEST(ImageFolder, ListsClassesAndFilesInSortedOrder) {
  const TemporaryDirectory directory;
  for (const auto* path : {"dog/b.png", "dog/a.JPG", "dog/more/z.jpeg", "dog/more/deep/y.png",
                           "dog/more-b/x.Png", "cat/10.png", "cat/9.png", "Zebra/z.png", "top.png"})
    place(directory, "rgb.png", path);
  write_file(directory / "dog/notes.txt", Bytes{1});
  write_file(directory / "dog/.png", Bytes{1});
  const auto folder = ImageFolder::load(directory);
  EXPECT_EQ(folder.classes(), (std::vector<std::string>{"Zebra", "cat", "dog"}));
  EXPECT_EQ(paths_of(folder, directory),
            (std::vector<std::string>{"Zebra/z.png", "cat/10.png", "cat/9.png", "dog/a.JPG", "dog/b.png",
                                      "dog/more/z.jpeg", "dog/more-b/x.Png", "dog/more/deep/y.png"}));
  for (std::int64_t i = 0; i < folder.size(); ++i) EXPECT_EQ(folder.label(i), i == 0 ? 0 : i < 3 ? 1 : 2);
  EXPECT_EQ(folder.sample_shape(), (Shape{3, 224, 224}));
  EXPECT_THROW(folder.path(8), Error);
  EXPECT_THROW(folder.label(-1), Error);
}

TEST(ImageFolder, DirectoriesWithoutImagesAreErrors) {
  const TemporaryDirectory directory;
  const auto load = [&] { ImageFolder::load(directory); };
  expect_error([&] { ImageFolder::load(directory / "nowhere"); }, directory / "nowhere",
               "cannot open the directory: No such file");
  expect_error(load, directory, "expected a sub-directory of images for each class, found none");
  place(directory, "rgb.png", "cat/a.png");
  std::filesystem::create_directories(directory / "dog/empty");
  expect_error(load, directory / "dog", "the class has no file that ends in .png, .jpg or .jpeg");
  place(directory, "rgb.png", "dog/a.png");
  std::filesystem::create_directory_symlink(directory / "dog", directory / "dog/loop");
  EXPECT_THROW(load(), DataError);
  EXPECT_THROW(ImageFolder::load(directory, {.height = 0}), Error);
}

#if TAUT_HAS_STB

// Two classes with five good images and three bad ones.
void make_set(const TemporaryDirectory& directory) {
  place(directory, "photo.png", "cat/1.png");
  place(directory, "empty.png", "cat/2.png");
  place(directory, "grey16.png", "cat/3.png");
  place(directory, "colour.jpg", "dog/1.jpg");
  place(directory, "huge.png", "dog/2.png");
  place(directory, "one_pixel.png", "dog/3.png");
  place(directory, "rgba.png", "dog/4.png");
  auto truncated = image_bytes("progressive.jpg");
  truncated.resize(truncated.size() / 2);
  write_file(directory / "dog/5.jpg", truncated);
}

TEST(ImageFolder, DecodesToTheSizeAsked) {
  const TemporaryDirectory directory;
  make_set(directory);
  const auto folder = ImageFolder::load(directory, {.height = 8, .width = 8});
  EXPECT_EQ(folder.sample_shape(), (Shape{3, 8, 8}));
  ASSERT_EQ(folder.size(), 8);
  std::vector<float> values(192), expected(192);
  Rng rng{0};
  EXPECT_EQ(folder.get(0, values, rng), 0);
  crop_and_resize(read_image(image_path("photo.png")), 8, 8, expected);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(folder.get(5, values, rng), 1);
  EXPECT_EQ(values[0], 9 / 255.0f);
}

TEST(ImageFolder, BadImagesAreErrorsOfTheirPaths) {
  const TemporaryDirectory directory;
  make_set(directory);
  const auto folder = ImageFolder::load(directory, {.height = 8, .width = 8});
  EXPECT_TRUE(folder.skipped().empty());
  std::vector<float> values(192);
  Rng rng{0};
  expect_error([&] { folder.get(1, values, rng); }, directory / "cat/2.png", "the file is empty");
  expect_error([&] { folder.get(4, values, rng); }, directory / "dog/2.png", "declares 100000 x 100000");
  expect_error([&] { folder.get(7, values, rng); }, directory / "dog/5.jpg", "the file is truncated");

  DataLoader loader{folder, {.batch_size = 2, .workers = 2}};
  EXPECT_THROW(for (const auto& batch : loader) EXPECT_LE(batch.size(), 2), DataError);
}

TEST(ImageFolder, BadImagesAreSkippedIfAsked) {
  const TemporaryDirectory directory;
  make_set(directory);
  const auto folder = ImageFolder::load(directory, {.height = 8, .width = 8, .bad_images = BadImages::skip});
  EXPECT_EQ(paths_of(folder, directory),
            (std::vector<std::string>{"cat/1.png", "cat/3.png", "dog/1.jpg", "dog/3.png", "dog/4.png"}));
  ASSERT_EQ(folder.skipped().size(), 3u);
  EXPECT_EQ(folder.skipped()[0].path(), directory / "cat/2.png");
  EXPECT_EQ(folder.skipped()[1].path(), directory / "dog/2.png");
  EXPECT_EQ(folder.skipped()[2].path(), directory / "dog/5.jpg");
  EXPECT_EQ(folder.label(2), 1);

  // A limit makes more images bad ones.
  const auto small = ImageFolder::load(
      directory, {.height = 8, .width = 8, .bad_images = BadImages::skip, .limits = {.max_pixels = 100}});
  EXPECT_EQ(paths_of(small, directory), (std::vector<std::string>{"cat/3.png", "dog/3.png", "dog/4.png"}));
}

TEST(ImageFolder, WithoutAnyGoodImageIsAnError) {
  const TemporaryDirectory directory;
  place(directory, "empty.png", "cat/1.png");
  expect_error([&] { ImageFolder::load(directory, {.bad_images = BadImages::skip}); }, directory,
               "no image can be decoded; the first error is: " + (directory / "cat/1.png"));
}

TEST(ImageFolder, LoadsAndAugmentsInWorkers) {
  const TemporaryDirectory directory;
  make_set(directory);
  const auto folder = ImageFolder::load(directory, {.height = 6, .width = 9, .bad_images = BadImages::skip});
  std::vector<std::vector<float>> epochs;
  for (const int workers : {0, 3}) {
    DataLoader loader{Augmented{folder, RandomCrop{2}, HorizontalFlip{}},
                      {.batch_size = 2, .seed = 3, .workers = workers}};
    auto& values = epochs.emplace_back();
    for (const auto& batch : loader) {
      EXPECT_EQ(batch.shape, (Shape{batch.size(), 3, 6, 9}));
      values.insert(values.end(), batch.values.begin(), batch.values.end());
    }
  }
  EXPECT_EQ(epochs[0].size(), 5u * 3 * 6 * 9);
  EXPECT_EQ(epochs[0], epochs[1]);
}

#endif

}  // namespace
}  // namespace taut::data
