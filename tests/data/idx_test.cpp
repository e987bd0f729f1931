#include <taut/data/idx.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "idx_bytes.hpp"

namespace {
std::atomic<std::size_t> largest_allocation = 0;
}

// Every allocation of this program passes here, so that a test can see how much a reader asked for. Not
// inlined, or g++ takes the pairs of `new` and `free` that it then sees for mistakes.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (size > largest_allocation) largest_allocation = size;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace taut::data {
namespace {

using namespace taut::test;

constexpr std::size_t mebibyte = 1 << 20;

// Expects that reading `bytes` is a `DataError` at `offset` whose message contains `text`.
void expect_error(const Bytes& bytes, std::int64_t offset, const std::string& text) {
  try {
    parse_idx(bytes, "some.idx");
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), "some.idx");
    EXPECT_EQ(error.offset(), offset) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Idx, ReadsEveryRank) {
  EXPECT_EQ(parse_idx(counting_idx({5}), "").shape, (Shape{5}));
  EXPECT_EQ(parse_idx(counting_idx({2, 3, 4}), "").shape, (Shape{2, 3, 4}));
  EXPECT_EQ(parse_idx(counting_idx({1, 2, 1, 2, 1, 2}), "").shape, (Shape{1, 2, 1, 2, 1, 2}));
  const Bytes expected{0, 1, 2, 3, 4, 5};
  EXPECT_EQ(parse_idx(counting_idx({2, 3}), "").values, expected);
}

TEST(Idx, ReadsMoreThanOneChunk) {
  const auto idx = parse_idx(counting_idx({3, 1000, 1000}, 251), "");
  ASSERT_EQ(idx.values.size(), 3'000'000u);
  for (std::size_t i = 0; i < idx.values.size(); ++i) ASSERT_EQ(idx.values[i], i % 251) << i;
}

TEST(Idx, ReadsEmptyArrays) {
  const auto idx = parse_idx(idx_header({0, 28, 28}), "");
  EXPECT_EQ(idx.shape, (Shape{0, 28, 28}));
  EXPECT_TRUE(idx.values.empty());
  expect_error(idx_header({0, 28, 28}) + Bytes{7}, 16, "more bytes follow the 0 elements");
}

TEST(Idx, ReadsFiles) {
  const TemporaryDirectory directory;
  const auto path = directory / "plain";
  write_file(path, counting_idx({4, 5}));
  EXPECT_EQ(read_idx(path).shape, (Shape{4, 5}));
  EXPECT_EQ(read_idx(path).values[19], 19);
}

TEST(Idx, NamesTheFileThatCannotBeRead) {
  const auto expect = [](const std::string& path, const std::string& text) {
    try {
      read_idx(path);
      ADD_FAILURE() << "no error for " << path;
    } catch (const DataError& error) {
      EXPECT_EQ(error.path(), path);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  const TemporaryDirectory directory;
  expect(directory / "missing", "cannot open the file");
  expect(directory, "cannot read the file");
}

TEST(Idx, EveryTruncationIsAnErrorAtTheEndOfTheFile) {
  const auto whole = counting_idx({2, 3});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto text = size < 12 ? "the header is truncated" : "the file is truncated";
    expect_error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)),
                 static_cast<std::int64_t>(size), text);
  }
}

TEST(Idx, TruncatedBodySaysWhatIsMissing) {
  expect_error(idx_header({2, 3}) + Bytes{1, 2, 3, 4}, 16,
               "declares [2, 3] = 6 elements, but only 4 are there");
}

TEST(Idx, TrailingBytesAreAnError) {
  expect_error(counting_idx({2, 3}) + Bytes{0}, 18, "more bytes follow the 6 elements of [2, 3]");
}

TEST(Idx, OtherFilesAreAnError) {
  expect_error({'P', 'K', 3, 4, 0, 0}, 0, "not an IDX file");
  expect_error({0, 1, 8, 1, 0, 0, 0, 0}, 0, "two zero bytes, got 0x00 0x01");
  expect_error({}, 0, "the header is truncated");
}

TEST(Idx, OtherTypesAreNamed) {
  expect_error(idx_header({1}, 0x09), 2, "got type 0x09, signed bytes");
  expect_error(idx_header({1}, 0x0b), 2, "got type 0x0b, 16-bit integers");
  expect_error(idx_header({1}, 0x0c), 2, "got type 0x0c, 32-bit integers");
  expect_error(idx_header({1}, 0x0d), 2, "got type 0x0d, 32-bit floats");
  expect_error(idx_header({1}, 0x0e), 2, "got type 0x0e, 64-bit floats");
  expect_error(idx_header({1}, 0xff), 2, "got type 0xff, no type that the format knows");
}

TEST(Idx, RanksOutOfRangeAreAnError) {
  expect_error(idx_header({}), 3, "expected 1 to 6 dimensions, got 0");
  expect_error(idx_header({1, 1, 1, 1, 1, 1, 1}), 3, "expected 1 to 6 dimensions, got 7");
}

TEST(Idx, ExtentsThatOverflowAreAnError) {
  expect_error(idx_header({0xffffffff, 0xffffffff, 1}), 8, "more elements than a 64-bit number can count");
  expect_error(idx_header({0x80000000, 0x80000000, 2, 0}), 12, "multiply to more elements");
}

TEST(Idx, HugeDeclaredSizesCostNothing) {
  const auto bytes = idx_header({0x7fffffff, 0xffffffff}) + Bytes{1, 2, 3, 4};
  largest_allocation = 0;
  expect_error(bytes, 16, "but only 4 are there");
  EXPECT_LE(largest_allocation, 2 * mebibyte);
}

TEST(Idx, MemoryIsBoundedByWhatTheFileHolds) {
  const auto bytes = idx_header({0x7fffffff}) + Bytes(5 * mebibyte, 1);
  largest_allocation = 0;
  expect_error(bytes, static_cast<std::int64_t>(8 + 5 * mebibyte), "truncated");
  EXPECT_LE(largest_allocation, 16 * mebibyte);
  largest_allocation = 0;
  EXPECT_EQ(parse_idx(counting_idx({5, mebibyte}), "").values.capacity(), 5 * mebibyte);
}

#if TAUT_HAS_ZLIB

TEST(Idx, RecognisesGzipByContent) {
  const auto plain = counting_idx({3, 700, 1000}, 251);
  const TemporaryDirectory directory;
  const auto path = directory / "compressed_without_gz_in_its_name";
  write_file(path, gzip(plain));
  const auto idx = read_idx(path);
  EXPECT_EQ(idx.shape, (Shape{3, 700, 1000}));
  EXPECT_EQ(idx.values, parse_idx(plain, "").values);

  const auto misnamed = directory / "plain.gz";
  write_file(misnamed, plain);
  EXPECT_EQ(read_idx(misnamed).values, idx.values);
}

TEST(Idx, ReadsGzipOfSeveralMembers) {
  const auto whole = counting_idx({2, 3});
  const Bytes first(whole.begin(), whole.begin() + 9), second(whole.begin() + 9, whole.end());
  EXPECT_EQ(parse_idx(gzip(first) + gzip(second), "").values, parse_idx(whole, "").values);
}

TEST(Idx, EveryTruncationOfGzipIsAnError) {
  const auto whole = gzip(counting_idx({20, 30}, 7));
  for (std::size_t size = 2; size < whole.size(); ++size) {
    expect_error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)),
                 static_cast<std::int64_t>(size), "gzip: the file is truncated");
  }
}

TEST(Idx, EveryFlippedBitOfTheChecksumAndSizeIsAnError) {
  const auto whole = gzip(counting_idx({20, 30}, 7));
  for (std::size_t i = whole.size() - 8; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] ^= 1;
    EXPECT_THROW(parse_idx(damaged, "some.idx"), DataError) << i;
  }
}

TEST(Idx, GarbageInOrBehindGzipIsAnError) {
  auto damaged = gzip(counting_idx({20, 30}, 7));
  std::fill(damaged.begin() + 10, damaged.end(), 0xff);
  EXPECT_THROW(parse_idx(damaged, ""), DataError);
  const auto whole = gzip(counting_idx({2, 3}));
  expect_error(whole + Bytes{'g', 'a', 'r', 'b', 'a', 'g', 'e'}, static_cast<std::int64_t>(whole.size()) + 2,
               "gzip: the compressed stream is corrupt: incorrect header check");
}

TEST(Idx, OffsetsInGzipCountDecompressedBytes) {
  expect_error(gzip(counting_idx({2, 3}) + Bytes{0}), 18, "counted in the decompressed data");
}

TEST(Idx, GzipBombsCostNothing) {
  const auto bomb = gzip(idx_header({10}) + Bytes(64 * mebibyte, 0));
  largest_allocation = 0;
  expect_error(bomb, 18, "more bytes follow the 10 elements");
  EXPECT_LE(largest_allocation, 2 * mebibyte);

  const auto liar = gzip(idx_header({0x7fffffff, 0xffffffff}));
  largest_allocation = 0;
  expect_error(liar, 12, "but only 0 are there");
  EXPECT_LE(largest_allocation, 2 * mebibyte);
}

#else

TEST(Idx, GzipWithoutZlibSaysWhatToDo) {
  expect_error({0x1f, 0x8b, 8, 0}, 0, "gunzip");
  expect_error({0x1f, 0x8b, 8, 0}, 0, "zlib1g-dev");
}

#endif

}  // namespace
}  // namespace taut::data
