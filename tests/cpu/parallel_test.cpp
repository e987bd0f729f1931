// The loop that spreads over threads: every index once, the same partition every time, exceptions carried
// out.

#include <taut/cpu/parallel.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using taut::cpu::parallel_for;
using Chunks = std::set<std::pair<std::int64_t, std::int64_t>>;

class ParallelTest : public testing::Test {
 protected:
  void TearDown() override { taut::set_threads(threads_); }

 private:
  int threads_ = taut::threads();
};

Chunks chunks_of(std::int64_t n, std::int64_t grain) {
  Chunks chunks;
  std::mutex mutex;
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    chunks.emplace(begin, end);
  });
  return chunks;
}

TEST_F(ParallelTest, VisitsEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    taut::set_threads(threads);
    for (const std::int64_t n : {0, 1, 2, 63, 64, 65, 100, 1000, 4097})
      for (const std::int64_t grain : {0, 1, 3, 64, 100, 5000}) {
        std::vector<int> visits(static_cast<std::size_t>(n));
        parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1))
            << "n " << n << ", grain " << grain;
      }
  }
}

TEST_F(ParallelTest, ThePartitionIsFixed) {
  for (const int threads : {1, 2, 4}) {
    taut::set_threads(threads);
    const Chunks first = chunks_of(10000, 100);
    for (int repeat = 0; repeat < 20; ++repeat) EXPECT_EQ(chunks_of(10000, 100), first);
    EXPECT_EQ(first.size(), static_cast<std::size_t>(taut::threads()));
  }
}

TEST_F(ParallelTest, IsSerialUpToTheGrainAndOnOneThread) {
  const Chunks whole{{0, 1000}};
  taut::set_threads(4);
  EXPECT_EQ(chunks_of(1000, 1000), whole);
  taut::set_threads(1);
  EXPECT_EQ(chunks_of(1000, 10), whole);
}

TEST_F(ParallelTest, ChunksStartAtCacheLinesUnlessTheGrainIsSmall) {
  taut::set_threads(3);
  for (const auto& [begin, end] : chunks_of(1000, 64)) EXPECT_EQ(begin % 64, 0);
  if (taut::threads() == 3) {
    EXPECT_EQ(chunks_of(3, 1), (Chunks{{0, 1}, {1, 2}, {2, 3}}));
  }
}

TEST_F(ParallelTest, NestedLoopsAreSerial) {
  taut::set_threads(2);
  std::vector<std::size_t> inner(2);
  parallel_for(2, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if (taut::threads() > 1) inner[static_cast<std::size_t>(i)] = chunks_of(1000, 1).size();
  });
  if (taut::threads() > 1) {
    EXPECT_EQ(inner, (std::vector<std::size_t>{1, 1}));
  }
}

TEST_F(ParallelTest, CarriesTheFirstExceptionOut) {
  for (const int threads : {1, 4}) {
    taut::set_threads(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      try {
        parallel_for(1000, 1, [](std::int64_t begin, std::int64_t) {
          throw taut::Error("chunk at " + std::to_string(begin));
        });
        FAIL() << "nothing was thrown";
      } catch (const taut::Error& error) {
        EXPECT_STREQ(error.what(), "chunk at 0");
      }
    }
  }
}

TEST_F(ParallelTest, TheThreadCountHoldsForEveryThread) {
  taut::set_threads(3);
  int seen = 0;
  std::thread([&] { seen = taut::threads(); }).join();
  EXPECT_EQ(seen, taut::threads());
#ifdef _OPENMP
  EXPECT_EQ(seen, 3);
  taut::cpu::apply_threads();
  EXPECT_EQ(omp_get_max_threads(), 3);
#else
  EXPECT_EQ(seen, 1);
#endif
}

TEST_F(ParallelTest, RefusesFewerThanOneThreadAndMoreThanItSurvives) {
  for (const int n : {0, -3, 1025, 100000}) {
    try {
      taut::set_threads(n);
      FAIL() << "nothing was thrown";
    } catch (const taut::Error& error) {
      EXPECT_NE(
          std::string(error.what()).find("set_threads: expected 1 to 1024 threads, got " + std::to_string(n)),
          std::string::npos);
    }
  }
}

}  // namespace
