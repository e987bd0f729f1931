#include <taut/data/cifar.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <taut/data/dataset.hpp>

#include "idx_bytes.hpp"

namespace taut::data {
namespace {

using namespace taut::test;

static_assert(Dataset<Cifar10> && Dataset<Cifar100>);
static_assert(std::ranges::is_sorted(cifar10_classes) && std::ranges::is_sorted(cifar100_classes));

// A record whose pixels count up from `first`, modulo 251.
Bytes record(Bytes labels, int first = 0) {
  for (int i = 0; i < 3072; ++i) labels.push_back(static_cast<std::uint8_t>((first + i) % 251));
  return labels;
}

// Batch b from 0 to 4 has the labels b and b + 5, and images that start with 2 b and 2 b + 1.
void write_train_batches(const std::string& directory) {
  for (int b = 0; b < 5; ++b) {
    const auto label = static_cast<std::uint8_t>(b), next = static_cast<std::uint8_t>(b + 5);
    write_file(directory + "/data_batch_" + std::to_string(b + 1) + ".bin",
               record({label}, 2 * b) + record({next}, 2 * b + 1));
  }
}

void write_test_batch(const std::string& directory) {
  write_file(directory + "/test_batch.bin", record({9}, 7) + record({0}) + record({3}));
}

// Expects that loading is a `DataError` of `path` at `offset` whose message has `text`.
template <class Set>
void expect_error(const std::string& directory, Split split, const std::string& path, std::int64_t offset,
                  const std::string& text) {
  try {
    Set::load(directory, split);
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), path);
    EXPECT_EQ(error.offset(), offset) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Cifar10, LoadsTheBatchesInOrder) {
  const TemporaryDirectory directory;
  write_train_batches(directory);
  const auto images = Cifar10::load(directory, Split::train);
  ASSERT_EQ(images.size(), 10);
  EXPECT_EQ(images.sample_shape(), (Shape{3, 32, 32}));
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(images.label(i), i / 2 + i % 2 * 5);
    EXPECT_EQ(images.image(i)[0], i);
    EXPECT_EQ(images.image(i)[1024], (i + 1024) % 251);  // the first pixel of the green plane
    EXPECT_EQ(images.image(i)[3071], (i + 3071) % 251);
  }
  std::vector<float> values(3072);
  Rng rng{0};
  EXPECT_EQ(images.get(3, values, rng), 6);
  for (int i = 0; i < 3072; ++i)
    ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>((3 + i) % 251) / 255.0f);
}

TEST(Cifar10, SplitsAreDifferentFiles) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(Cifar10::is_present(directory));
  write_train_batches(directory);
  EXPECT_FALSE(Cifar10::is_present(directory));
  write_test_batch(directory);
  EXPECT_TRUE(Cifar10::is_present(directory));
  const auto test = Cifar10::load(directory, Split::test);
  ASSERT_EQ(test.size(), 3);
  EXPECT_EQ(test.label(0), 9);
  EXPECT_EQ(test.image(0)[0], 7);
}

TEST(Cifar10, FindsTheFolderOfTheArchive) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "cifar-10-batches-bin");
  write_train_batches(directory / "cifar-10-batches-bin");
  write_test_batch(directory / "cifar-10-batches-bin");
  EXPECT_TRUE(Cifar10::is_present(directory));
  EXPECT_EQ(Cifar10::load(directory, Split::train).size(), 10);
  EXPECT_EQ(Cifar10::load(directory, Split::test).size(), 3);
}

TEST(Cifar10, MissingFilesSayHowToGetTheData) {
  const TemporaryDirectory parent;
  const auto directory = parent / "cifar-10";
  const auto advice = "run `sh examples/download.sh cifar-10 " + directory + "`";
  expect_error<Cifar10>(directory, Split::train, directory, -1, "the directory does not exist");
  expect_error<Cifar10>(directory, Split::train, directory, -1, advice);

  std::filesystem::create_directory(directory);
  expect_error<Cifar10>(directory, Split::test, directory, -1, "no file test_batch.bin. To get the data");
  write_train_batches(directory);
  std::filesystem::remove(directory + "/data_batch_4.bin");
  EXPECT_FALSE(Cifar10::is_present(directory));
  expect_error<Cifar10>(directory, Split::train, directory, -1, "no file data_batch_4.bin");
}

TEST(Cifar10, TruncatedFilesAreAnErrorWhereTheyEnd) {
  const TemporaryDirectory directory;
  const auto path = directory / "test_batch.bin";
  const auto whole = record({1}) + record({2});
  for (const int size : {1, 3072, 3074, 6145}) {
    write_file(path, std::span(whole).first(static_cast<std::size_t>(size)));
    expect_error<Cifar10>(directory, Split::test, path, size,
                          "Cifar10::load: the file is truncated: it ends within a record of 3073 bytes");
  }
  write_file(path, {});
  expect_error<Cifar10>(directory, Split::test, path, 0, "the file is empty");
}

TEST(Cifar10, LabelsAboveNineAreAnError) {
  const TemporaryDirectory directory;
  write_train_batches(directory);
  const auto path = directory / "data_batch_3.bin";
  write_file(path, record({9}) + record({10}));
  expect_error<Cifar10>(directory, Split::train, path, 3073, "expected a label from 0 to 9, got 10");
}

TEST(Cifar10, IndexOutOfRangeIsAnError) {
  const TemporaryDirectory directory;
  write_test_batch(directory);
  const auto images = Cifar10::load(directory, Split::test);
  EXPECT_THROW(images.image(3), Error);
  EXPECT_THROW(images.label(-1), Error);
}

TEST(Cifar10, CopiesShareTheBytes) {
  const TemporaryDirectory directory;
  write_test_batch(directory);
  const auto images = Cifar10::load(directory, Split::test);
  const auto copy = images;
  EXPECT_EQ(copy.image(0).data(), images.image(0).data());
}

TEST(Cifar100, LoadsTheFineLabels) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "cifar-100-binary");
  write_file(directory / "cifar-100-binary/train.bin", record({19, 99}, 5) + record({0, 42}));
  write_file(directory / "test.bin", record({3, 0}));
  EXPECT_TRUE(Cifar100::is_present(directory));
  const auto train = Cifar100::load(directory, Split::train);
  ASSERT_EQ(train.size(), 2);
  EXPECT_EQ(train.label(0), 99);
  EXPECT_EQ(train.label(1), 42);
  EXPECT_EQ(train.image(0)[0], 5);
  EXPECT_EQ(Cifar100::load(directory, Split::test).size(), 1);
  EXPECT_EQ(cifar100_classes[99], "worm");
}

TEST(Cifar100, BadFilesAreErrors) {
  const TemporaryDirectory directory;
  const auto path = directory / "train.bin";
  expect_error<Cifar100>(directory, Split::train, directory, -1, "cifar-100-binary.tar.gz");
  write_file(path, record({0, 0}) + record({20, 0}));
  expect_error<Cifar100>(directory, Split::train, path, 3074,
                         "Cifar100::load: expected a label from 0 to 19");
  write_file(path, record({0, 0}) + record({19, 100}));
  expect_error<Cifar100>(directory, Split::train, path, 3075, "expected a label from 0 to 99, got 100");
  write_file(path, record({0, 0}) + Bytes{1});
  expect_error<Cifar100>(directory, Split::train, path, 3075, "within a record of 3074 bytes");
}

TEST(ByteImages, NeedAnImageForEachLabel) {
  EXPECT_THROW(ByteImages("Set", {1, 2, 2}, Bytes(7), Bytes(2)), Error);
  const ByteImages images("Set", {1, 2, 2}, Bytes(8), Bytes(2));
  EXPECT_EQ(images.sample_shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(images.image(1).size(), 4u);
}

TEST(Cifar10, ReadsTheRealData) {
  const char* data = std::getenv("TAUT_DATA_DIR");
  if (!data) GTEST_SKIP() << "set TAUT_DATA_DIR to a directory that has CIFAR-10 in cifar-10-batches-bin/";
  const auto train = Cifar10::load(data, Split::train), test = Cifar10::load(data, Split::test);
  ASSERT_EQ(train.size(), 50'000);
  ASSERT_EQ(test.size(), 10'000);
  std::vector<std::int64_t> counts(10), first_labels;
  std::vector<double> sum(3), square(3);
  for (std::int64_t i = 0; i < train.size(); ++i) {
    ++counts[static_cast<std::size_t>(train.label(i))];
    if (i < 8) first_labels.push_back(train.label(i));
    if (i % 8 != 0) continue;  // enough for the means
    const auto image = train.image(i);
    for (std::size_t pixel = 0; pixel < image.size(); ++pixel) {
      sum[pixel / 1024] += image[pixel] / 255.0;
      square[pixel / 1024] += image[pixel] / 255.0 * (image[pixel] / 255.0);
    }
  }
  EXPECT_EQ(counts, std::vector<std::int64_t>(10, 5000));
  EXPECT_EQ(first_labels, (std::vector<std::int64_t>{6, 9, 9, 4, 1, 1, 2, 7}));  // a frog, two trucks, ...
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const double count = 50'000 / 8 * 1024.0, mean = sum[channel] / count;
    EXPECT_NEAR(mean, cifar10_mean[channel], 2e-3);
    EXPECT_NEAR(std::sqrt(square[channel] / count - mean * mean), cifar10_std[channel], 5e-3);
  }
}

}  // namespace
}  // namespace taut::data
