#include <taut/data/data_loader.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace taut::data {
namespace {

using namespace std::chrono_literals;

// Sample i is [i, i + 0.5, a random number], and its label is 10 i.
struct Counting {
  std::int64_t count = 0;

  std::int64_t size() const { return count; }
  Shape sample_shape() const { return {3}; }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    values[0] = static_cast<float>(index);
    values[1] = static_cast<float>(index) + 0.5f;
    values[2] = static_cast<float>(rng.uniform());
    return 10 * index;
  }
};
static_assert(Dataset<Counting>);
static_assert(!Dataset<int>);

// Throws at one index.
struct Faulty : Counting {
  std::int64_t bad_index = -1;

  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    if (index == bad_index) throw std::runtime_error("sample " + std::to_string(index) + " is bad");
    return Counting::get(index, values, rng);
  }
};

static_assert(std::input_iterator<BatchIterator>);
static_assert(std::ranges::input_range<DataLoader<Counting>>);
static_assert(std::ranges::input_range<const Epoch>);
static_assert(!std::is_copy_constructible_v<DataLoader<Counting>>);
static_assert(std::is_nothrow_move_constructible_v<DataLoader<Counting>>);

// Everything that an epoch gave.
struct Record {
  std::vector<float> values;
  std::vector<std::int64_t> labels, samples, indices;
  std::vector<Shape> shapes;
  bool operator==(const Record&) const = default;
};

template <class Batches> Record record(Batches&& batches) {
  Record seen;
  for (const Batch& batch : batches) {
    seen.values.insert(seen.values.end(), batch.values.begin(), batch.values.end());
    seen.labels.insert(seen.labels.end(), batch.labels.begin(), batch.labels.end());
    seen.samples.insert(seen.samples.end(), batch.samples.begin(), batch.samples.end());
    seen.indices.push_back(batch.index);
    seen.shapes.push_back(batch.shape);
  }
  return seen;
}

std::vector<std::int64_t> first_integers(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class DataLoaderWorkers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, DataLoaderWorkers, testing::Values(0, 1, 2, 3, 4, 16));

TEST_P(DataLoaderWorkers, EachSampleComesOncePerEpoch) {
  DataLoader loader{Counting{1003}, {.batch_size = 32, .workers = GetParam()}};
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto seen = record(loader);
    EXPECT_EQ(seen.indices, first_integers(32));
    EXPECT_FALSE(std::ranges::is_sorted(seen.samples));
    std::ranges::sort(seen.samples);
    EXPECT_EQ(seen.samples, first_integers(1003));
  }
}

TEST_P(DataLoaderWorkers, BatchesHoldTheirSamples) {
  DataLoader loader{Counting{101}, {.batch_size = 8, .workers = GetParam(), .prefetch = 2}};
  for (const auto& batch : loader) {
    EXPECT_EQ(batch.shape, (Shape{batch.size(), 3}));
    EXPECT_EQ(batch.size(), batch.index < 12 ? 8 : 5);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.values.data()) % 64, 0u);
    ASSERT_EQ(batch.values.size(), 3 * batch.labels.size());
    for (std::size_t row = 0; row < batch.labels.size(); ++row) {
      EXPECT_EQ(batch.labels[row], 10 * batch.samples[row]);
      EXPECT_EQ(batch.values[3 * row], static_cast<float>(batch.samples[row]));
      EXPECT_EQ(batch.values[3 * row + 1], static_cast<float>(batch.samples[row]) + 0.5f);
    }
  }
}

TEST_P(DataLoaderWorkers, EverythingIsIndependentOfTheWorkers) {
  const DataLoaderOptions options{.batch_size = 16, .seed = 7, .workers = GetParam(), .prefetch = 3};
  auto sequential_options = options;
  sequential_options.workers = 0;
  DataLoader loader{Counting{500}, options}, sequential{Counting{500}, sequential_options};
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(record(loader), record(sequential));
}

TEST_P(DataLoaderWorkers, BuffersAreReused) {
  const int workers = GetParam(), prefetch = 3;
  DataLoader loader{Counting{1000}, {.batch_size = 10, .workers = workers, .prefetch = prefetch}};
  std::set<const float*> buffers;
  for (const auto& batch : loader) buffers.insert(batch.values.data());
  EXPECT_EQ(buffers.size(), workers == 0 ? 1u : static_cast<std::size_t>(prefetch) + 1);
}

TEST_P(DataLoaderWorkers, TheViewedBatchIsNotOverwritten) {
  DataLoader loader{Counting{60}, {.batch_size = 4, .workers = GetParam(), .prefetch = 1}};
  for (const auto& batch : loader) {
    const std::vector<float> before(batch.values.begin(), batch.values.end());
    std::this_thread::sleep_for(1ms);  // the workers now run as far ahead as they may
    EXPECT_TRUE(std::ranges::equal(batch.values, before));
  }
}

TEST_P(DataLoaderWorkers, ExceptionsComeOutWhereTheyHappened) {
  for (const std::int64_t bad_index : {0, 9, 50, 99}) {
    DataLoader loader{Faulty{{100}, bad_index},
                      {.batch_size = 10, .shuffle = false, .workers = GetParam(), .prefetch = 2}};
    std::int64_t batches = 0;
    try {
      for (const auto& batch : loader) {
        EXPECT_EQ(batch.index, batches);
        ++batches;
      }
      ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "sample " + std::to_string(bad_index) + " is bad");
    }
    EXPECT_EQ(batches, bad_index / 10);
  }
}

TEST_P(DataLoaderWorkers, AnIteratorThatThrewIsAtItsEnd) {
  DataLoader loader{Faulty{{100}, 15}, {.batch_size = 10, .shuffle = false, .workers = GetParam()}};
  auto iterator = loader.begin();
  EXPECT_THROW(++iterator, std::runtime_error);
  EXPECT_EQ(iterator, std::default_sentinel);
}

TEST_P(DataLoaderWorkers, BreakingOutEndsTheEpoch) {
  DataLoader loader{Counting{256}, {.batch_size = 4, .workers = GetParam(), .prefetch = 3}};
  for (int round = 0; round < 200; ++round) {
    int batches = 0;
    for ([[maybe_unused]] const auto& batch : loader) {
      if (++batches > round % 7) break;
    }
    EXPECT_EQ(batches, round % 7 + 1);
  }
  EXPECT_EQ(record(loader), record(loader.epoch(200)));
}

TEST_P(DataLoaderWorkers, TheConsumersExceptionsEndTheEpoch) {
  DataLoader loader{Counting{256}, {.batch_size = 4, .workers = GetParam(), .prefetch = 3}};
  const auto consume = [&] {
    for (const auto& batch : loader) {
      if (batch.index == 2) throw std::logic_error("the training failed");
    }
  };
  for (int round = 0; round < 20; ++round) EXPECT_THROW(consume(), std::logic_error);
}

TEST_P(DataLoaderWorkers, IteratorsOutliveTheirLoader) {
  auto iterator = [&] {
    DataLoader loader{Counting{40}, {.batch_size = 4, .workers = GetParam(), .prefetch = 1}};
    return loader.begin();
  }();
  std::int64_t batches = 0;
  for (; iterator != std::default_sentinel; ++iterator) EXPECT_EQ(iterator->index, batches++);
  EXPECT_EQ(batches, 10);
}

TEST_P(DataLoaderWorkers, EpochsResumeInTheMiddle) {
  DataLoader loader{Counting{200}, {.batch_size = 16, .seed = 3, .workers = GetParam()}};
  const auto whole = record(loader.epoch(5));
  for (const std::int64_t start : {0, 1, 6, 12, 13}) {
    const auto rest = record(loader.epoch(5, start));
    EXPECT_EQ(loader.epoch(5, start).size(), 13 - start);
    ASSERT_EQ(rest.indices.size(), static_cast<std::size_t>(13 - start));
    EXPECT_TRUE(std::ranges::equal(rest.values, std::span(whole.values).last(rest.values.size())));
    EXPECT_TRUE(std::ranges::equal(rest.samples, std::span(whole.samples).last(rest.samples.size())));
    EXPECT_TRUE(std::ranges::equal(rest.indices, std::span(whole.indices).last(rest.indices.size())));
  }
}

TEST_P(DataLoaderWorkers, TwoLoadersRunAtOnce) {
  DataLoader train{Counting{300}, {.batch_size = 7, .workers = GetParam()}};
  DataLoader other{Counting{300}, {.batch_size = 7, .workers = GetParam()}};
  auto b = other.begin();
  for (const auto& a : train) {
    ASSERT_NE(b, std::default_sentinel);
    EXPECT_TRUE(std::ranges::equal(a.samples, b->samples));
    ++b;
  }
  EXPECT_EQ(b, std::default_sentinel);
}

TEST_P(DataLoaderWorkers, EmptyDataSetsGiveNoBatches) {
  DataLoader loader{Counting{0}, {.workers = GetParam()}};
  EXPECT_EQ(loader.batches_per_epoch(), 0);
  EXPECT_EQ(loader.begin(), loader.end());
}

TEST(DataLoader, EpochsHaveDifferentOrders) {
  DataLoader loader{Counting{100}, {.batch_size = 10}};
  const auto first = record(loader), second = record(loader), third = record(loader);
  EXPECT_NE(first.samples, second.samples);
  EXPECT_NE(second.samples, third.samples);
  EXPECT_EQ(record(loader.epoch(0)), first);
  EXPECT_EQ(record(loader.epoch(1)), second);
  EXPECT_EQ(record(loader), record(loader.epoch(3)));
}

TEST(DataLoader, SeedsHaveDifferentOrders) {
  const auto order = [](std::uint64_t seed) {
    DataLoader loader{Counting{100}, {.seed = seed}};
    return record(loader).samples;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(DataLoader, RandomnessOfASampleDependsOnSeedEpochAndIndexOnly) {
  // The random number of each sample, by index.
  const auto draws = [](DataLoaderOptions options, std::int64_t epoch) {
    DataLoader loader{Counting{50}, options};
    const auto seen = record(loader.epoch(epoch));
    std::vector<float> by_index(50);
    for (std::size_t i = 0; i < 50; ++i) {
      by_index[static_cast<std::size_t>(seen.samples[i])] = seen.values[3 * i + 2];
    }
    return by_index;
  };
  const auto reference = draws({.batch_size = 8}, 0);
  EXPECT_EQ(std::set<float>(reference.begin(), reference.end()).size(), 50u);
  EXPECT_EQ(draws({.batch_size = 5, .shuffle = false, .workers = 3}, 0), reference);
  EXPECT_NE(draws({.batch_size = 8}, 1), reference);
  EXPECT_NE(draws({.batch_size = 8, .seed = 1}, 0), reference);
}

TEST(DataLoader, KeepsTheOrderWithoutShuffling) {
  DataLoader loader{Counting{50}, {.batch_size = 8, .shuffle = false, .workers = 3}};
  EXPECT_EQ(record(loader).samples, first_integers(50));
}

TEST(DataLoader, DropsAPartialLastBatch) {
  DataLoader loader{Counting{50}, {.batch_size = 8, .drop_last = true}};
  EXPECT_EQ(loader.batches_per_epoch(), 6);
  EXPECT_EQ(record(loader).samples.size(), 48u);
  DataLoader exact{Counting{48}, {.batch_size = 8, .drop_last = true}};
  EXPECT_EQ(record(exact).samples.size(), 48u);
  DataLoader none{Counting{7}, {.batch_size = 8, .drop_last = true}};
  EXPECT_EQ(none.begin(), none.end());
}

TEST(DataLoader, BatchesLargerThanTheDataSetHoldAllOfIt) {
  DataLoader loader{Counting{5}, {.batch_size = std::int64_t{1} << 60}};
  EXPECT_EQ(record(loader).shapes, std::vector<Shape>{(Shape{5, 3})});
}

TEST(DataLoader, MovesInMidEpoch) {
  DataLoader loader{Counting{40}, {.batch_size = 4}};
  auto iterator = loader.begin();
  auto moved = std::move(loader);
  auto moved_iterator = std::move(iterator);
  EXPECT_EQ(moved_iterator->index, 0);
  EXPECT_EQ((++moved_iterator)->index, 1);
  EXPECT_EQ(record(moved), record(moved.epoch(1)));
}

TEST(DataLoader, ReadsAheadButNotTooFar) {
  struct Counted : Counting {
    std::shared_ptr<std::atomic<int>> reads = std::make_shared<std::atomic<int>>(0);
    std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
      ++*reads;
      return Counting::get(index, values, rng);
    }
  };
  DataLoader loader{Counted{{100}}, {.batch_size = 5, .workers = 2, .prefetch = 3}};
  const auto iterator = loader.begin();
  const auto& reads = *loader.dataset().reads;
  const int allowed = (1 + 3) * 5;
  for (int i = 0; i < 2000 && reads < allowed; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(reads, allowed);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(reads, allowed);
}

TEST(DataLoader, LeavingDoesNotWaitForWholeBatches) {
  struct SlowAfterFirstBatch : Counting {
    std::shared_ptr<std::atomic<bool>> in_second_batch = std::make_shared<std::atomic<bool>>(false);
    std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
      if (index >= 1000) {
        *in_second_batch = true;
        std::this_thread::sleep_for(10ms);
      }
      return Counting::get(index, values, rng);
    }
  };
  DataLoader loader{SlowAfterFirstBatch{{5000}}, {.batch_size = 1000, .shuffle = false}};
  const auto start = std::chrono::steady_clock::now();
  for ([[maybe_unused]] const auto& batch : loader) {
    while (!*loader.dataset().in_second_batch) std::this_thread::sleep_for(1ms);
    break;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);  // any other batch takes 10 s
}

TEST(DataLoader, OptionsOutOfRangeAreAnError) {
  const auto expect_error = [](DataLoaderOptions options, const std::string& text) {
    try {
      DataLoader loader{Counting{10}, options};
      ADD_FAILURE() << "no error, expected: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "DataLoader: expected " + text);
    }
  };
  expect_error({.batch_size = 0}, "batch_size to be at least 1, got 0");
  expect_error({.batch_size = -64}, "batch_size to be at least 1, got -64");
  expect_error({.workers = -1}, "workers to be at least 0, got -1");
  expect_error({.prefetch = 0}, "prefetch to be at least 1, got 0");
}

TEST(DataLoader, EpochsOutOfRangeAreAnError) {
  const DataLoader loader{Counting{10}, {.batch_size = 4}};
  EXPECT_THROW(loader.epoch(-1), Error);
  EXPECT_THROW(loader.epoch(0, -1), Error);
  EXPECT_THROW(loader.epoch(0, 4), Error);
  EXPECT_EQ(loader.epoch(0, 3).begin(), loader.epoch(0, 3).end());
}

TEST(DataLoader, SamplesOfTheHighestRankAreAnError) {
  struct HighRank : Counting {
    Shape sample_shape() const { return {1, 1, 1, 1, 1, 3}; }
  };
  EXPECT_THROW(DataLoader<HighRank>{HighRank{}}, ShapeError);
}

// The part of a tensor that batches use.
template <class E> struct FakeTensor {
  using Element = E;
  using Index = FakeTensor<std::int64_t>;
  std::vector<E> values;
  Shape shape;
  static FakeTensor from_host(std::span<const E> values, const Shape& shape) {
    return {{values.begin(), values.end()}, shape};
  }
};

TEST(DataLoader, BatchesBecomeTensors) {
  DataLoader loader{Counting{5}, {.batch_size = 3, .shuffle = false}};
  auto iterator = loader.begin();
  const auto tensor = iterator->tensor<FakeTensor<float>>();
  const auto precise = iterator->tensor<FakeTensor<double>>();
  const auto targets = iterator->targets<FakeTensor<float>>();
  EXPECT_EQ(tensor.shape, (Shape{3, 3}));
  EXPECT_TRUE(std::ranges::equal(tensor.values, iterator->values));
  EXPECT_EQ(precise.shape, (Shape{3, 3}));
  EXPECT_EQ(precise.values[4], 1.5);
  EXPECT_EQ(targets.shape, (Shape{3}));
  EXPECT_EQ(targets.values, (std::vector<std::int64_t>{0, 10, 20}));
}

}  // namespace
}  // namespace taut::data
