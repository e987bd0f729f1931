#include <taut/data/mnist.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>

#include <taut/data/dataset.hpp>

#include "idx_bytes.hpp"

namespace taut::data {
namespace {

using namespace taut::test;

static_assert(Dataset<Mnist>);

void write_train_split(const TemporaryDirectory& directory, const Bytes& images, const Bytes& labels) {
  write_file(directory / "train-images-idx3-ubyte", images);
  write_file(directory / "train-labels-idx1-ubyte", labels);
}

void write_test_split(const TemporaryDirectory& directory) {
  write_file(directory / "t10k-images-idx3-ubyte", counting_idx({5, 28, 28}));
  write_file(directory / "t10k-labels-idx1-ubyte", counting_idx({5}));
}

// Expects that loading the train split is a `DataError` of `path` at `offset` whose message has `text`.
void expect_error(const std::string& directory, const std::string& path, std::int64_t offset,
                  const std::string& text) {
  try {
    Mnist::load(directory, Split::train);
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), path);
    EXPECT_EQ(error.offset(), offset) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Mnist, LoadsImagesAndLabels) {
  const TemporaryDirectory directory;
  write_train_split(directory, counting_idx({20, 28, 28}), counting_idx({20}, 10));
  const auto mnist = Mnist::load(directory, Split::train);
  ASSERT_EQ(mnist.size(), 20);
  EXPECT_EQ(mnist.sample_shape(), (Shape{1, 28, 28}));
  EXPECT_EQ(mnist.label(13), 3);
  EXPECT_EQ(mnist.image(1)[0], 784 % 256);

  std::vector<float> values(784);
  Rng rng{0};
  EXPECT_EQ(mnist.get(0, values, rng), 0);
  for (int i = 0; i < 784; ++i)
    ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(i % 256) / 255.0f);
}

TEST(Mnist, SplitsAreDifferentFiles) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(Mnist::is_present(directory));
  write_train_split(directory, counting_idx({20, 28, 28}), counting_idx({20}, 10));
  EXPECT_FALSE(Mnist::is_present(directory));
  write_test_split(directory);
  EXPECT_TRUE(Mnist::is_present(directory));
  EXPECT_EQ(Mnist::load(directory, Split::train).size(), 20);
  EXPECT_EQ(Mnist::load(directory, Split::test).size(), 5);
}

TEST(Mnist, FindsFilesSpelledWithDots) {
  const TemporaryDirectory directory;
  write_file(directory / "train-images.idx3-ubyte", counting_idx({3, 28, 28}));
  write_file(directory / "train-labels.idx1-ubyte", counting_idx({3}));
  EXPECT_EQ(Mnist::load(directory, Split::train).size(), 3);
}

TEST(Mnist, CopiesShareTheBytes) {
  const TemporaryDirectory directory;
  write_test_split(directory);
  const auto mnist = Mnist::load(directory, Split::test);
  const auto copy = mnist;
  EXPECT_EQ(copy.image(0).data(), mnist.image(0).data());
}

TEST(Mnist, IndexOutOfRangeIsAnError) {
  const TemporaryDirectory directory;
  write_test_split(directory);
  const auto mnist = Mnist::load(directory, Split::test);
  std::vector<float> values(784);
  Rng rng{0};
  EXPECT_THROW(mnist.get(5, values, rng), Error);
  EXPECT_THROW(mnist.label(-1), Error);
}

TEST(Mnist, MissingDirectorySaysHowToGetTheData) {
  const TemporaryDirectory parent;
  const auto directory = parent / "nowhere";
  expect_error(directory, directory, -1, "the directory does not exist");
  expect_error(directory, directory, -1, "sh examples/download.sh mnist " + directory);
  expect_error(directory, directory, -1, "dataset-fashion-mnist");
}

TEST(Mnist, MissingFileSaysWhatWasLookedFor) {
  const TemporaryDirectory directory;
  expect_error(directory, directory, -1,
               "no file train-images-idx3-ubyte or train-images.idx3-ubyte or train-images-idx3-ubyte.gz or "
               "train-images.idx3-ubyte.gz");
  write_file(directory / "train-images-idx3-ubyte", counting_idx({3, 28, 28}));
  expect_error(directory, directory, -1, "no file train-labels-idx1-ubyte or");
  expect_error(directory, directory, -1, "download.sh");
}

TEST(Mnist, ImagesOfAnotherShapeAreAnError) {
  const TemporaryDirectory directory;
  const auto path = directory / "train-images-idx3-ubyte";
  for (const auto& images : {counting_idx({3, 28}), counting_idx({3, 28, 29}), counting_idx({3, 32, 28}),
                             counting_idx({3, 28, 28, 1}), counting_idx({3})}) {
    write_train_split(directory, images, counting_idx({3}));
    expect_error(directory, path, 4, "expected images of shape [count, 28, 28], got [3");
  }
}

TEST(Mnist, LabelsOfAnotherShapeAreAnError) {
  const TemporaryDirectory directory;
  write_train_split(directory, counting_idx({3, 28, 28}), counting_idx({3, 1}));
  expect_error(directory, directory / "train-labels-idx1-ubyte", 3, "shape [count], got [3, 1]");
}

TEST(Mnist, DifferentCountsAreAnError) {
  const TemporaryDirectory directory;
  write_train_split(directory, counting_idx({3, 28, 28}), counting_idx({4}));
  expect_error(
      directory, directory / "train-labels-idx1-ubyte", 4,
      "one label for each of the 3 images in " + (directory / "train-images-idx3-ubyte") + ", got 4");
}

TEST(Mnist, LabelsAboveNineAreAnError) {
  const TemporaryDirectory directory;
  write_train_split(directory, counting_idx({12, 28, 28}), counting_idx({12}));
  expect_error(directory, directory / "train-labels-idx1-ubyte", 18, "labels from 0 to 9, got 10");
}

TEST(Mnist, DamagedFilesAreAnErrorOfThatFile) {
  const TemporaryDirectory directory;
  auto images = counting_idx({3, 28, 28});
  images.pop_back();
  write_train_split(directory, images, counting_idx({3}));
  expect_error(directory, directory / "train-images-idx3-ubyte", 16 + 3 * 784 - 1, "truncated");
}

#if TAUT_HAS_ZLIB

TEST(Mnist, LoadsCompressedFiles) {
  const TemporaryDirectory directory;
  write_file(directory / "train-images-idx3-ubyte.gz", gzip(counting_idx({7, 28, 28})));
  write_file(directory / "train-labels.idx1-ubyte.gz", gzip(counting_idx({7})));
  EXPECT_EQ(Mnist::load(directory, Split::train).size(), 7);
}

// Checks a published data set: its size, that the classes are balanced, and the first labels.
void check_published(const std::string& directory, std::vector<std::int64_t> first_labels, double mean) {
  const auto train = Mnist::load(directory, Split::train), test = Mnist::load(directory, Split::test);
  ASSERT_EQ(train.size(), 60000);
  ASSERT_EQ(test.size(), 10000);
  for (std::size_t i = 0; i < first_labels.size(); ++i) {
    EXPECT_EQ(train.label(static_cast<std::int64_t>(i)), first_labels[i]);
  }
  std::vector<int> counts(10);
  double sum = 0;
  for (std::int64_t i = 0; i < train.size(); ++i) {
    ++counts[static_cast<std::size_t>(train.label(i))];
    const auto image = train.image(i);
    sum = std::accumulate(image.begin(), image.end(), sum);
  }
  for (const int count : counts) EXPECT_NEAR(count, 6000, 800);
  EXPECT_NEAR(sum / (60000.0 * 784 * 255), mean, 1e-4);
}

TEST(Mnist, ReadsTheRealData) {
  const char* data = std::getenv("TAUT_DATA_DIR");
  if (!data) GTEST_SKIP() << "set TAUT_DATA_DIR to a directory that has MNIST in mnist/";
  check_published(std::string(data) + "/mnist", {5, 0, 4, 1, 9, 2, 1, 3, 1, 4}, 0.1307);
}

TEST(Mnist, ReadsFashionMnistOfDebiansPackage) {
  if (!std::filesystem::exists(fashion_mnist_directory)) GTEST_SKIP() << "dataset-fashion-mnist is not here";
  check_published(fashion_mnist_directory, {9, 0, 0, 3, 0, 2, 7, 2, 5, 5}, 0.2860);
  EXPECT_EQ(fashion_mnist_classes[9], "Ankle boot");
}

#endif

}  // namespace
}  // namespace taut::data
