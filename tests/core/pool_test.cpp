#include "taut/core/pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "taut/core/random.hpp"

namespace {

using taut::cpu::Buffer;
using taut::cpu::Pool;
using taut::cpu::detail::block_bytes;
using taut::cpu::detail::capacity_of;
using taut::cpu::detail::max_bytes;
using taut::cpu::detail::size_class_of;

// ---- size classes

static_assert(capacity_of(size_class_of(0)) == 64 && capacity_of(size_class_of(1)) == 64);
static_assert(capacity_of(size_class_of(64)) == 64 && capacity_of(size_class_of(65)) == 128);
static_assert(capacity_of(size_class_of(1025)) == 1280 && capacity_of(size_class_of(1281)) == 1536);
static_assert(capacity_of(size_class_of(4 << 20)) == 4 << 20);
static_assert(capacity_of(size_class_of(max_bytes)) == max_bytes);

TEST(SizeClass, IsTheSmallestThatFits) {
  for (std::size_t size_class = 1; size_class <= size_class_of(max_bytes); ++size_class) {
    const std::size_t below = capacity_of(size_class - 1), capacity = capacity_of(size_class);
    ASSERT_LT(below, capacity);
    ASSERT_EQ(size_class_of(below + 1), size_class);
    ASSERT_EQ(size_class_of(capacity), size_class);
    ASSERT_EQ(capacity % 64, 0u);
    // less than a quarter is wasted
    if (below >= 256) {
      ASSERT_LE(capacity - below, below / 4);
    }
  }
}

/// Starts with an empty cache and the default limit, and restores both.
class PoolTest : public testing::Test {
 protected:
  void SetUp() override {
    Pool::trim();
    live_before_ = Pool::live_bytes();
  }
  void TearDown() override {
    EXPECT_EQ(live(), 0u) << "a test leaves no buffers";
    Pool::cache_limit(limit_before_);
    Pool::trim();
    EXPECT_EQ(Pool::cached_bytes(), 0u);
  }
  std::size_t live() const { return Pool::live_bytes() - live_before_; }

 private:
  const std::size_t limit_before_ = Pool::cache_limit();
  std::size_t live_before_ = 0;
};

constexpr std::size_t taken_for(std::size_t bytes) { return block_bytes(size_class_of(bytes)); }

// ---- Buffer

static_assert(sizeof(Buffer) == sizeof(void*));
static_assert(std::is_nothrow_move_constructible_v<Buffer> && std::is_nothrow_move_assignable_v<Buffer>);
static_assert(std::is_nothrow_copy_constructible_v<Buffer>);

class BufferTest : public PoolTest {};

TEST_F(BufferTest, IsEmptyByDefault) {
  const Buffer buffer;
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.bytes(), 0u);
  EXPECT_FALSE(buffer.unique());
  EXPECT_FALSE(buffer);
  const Buffer copy = buffer;
  EXPECT_FALSE(copy);
}

TEST_F(BufferTest, HasAlignedMemoryOfTheSizeAskedFor) {
  for (const std::size_t bytes : {1u, 3u, 63u, 64u, 65u, 100u, 4096u, 5000000u}) {
    const Buffer buffer = Buffer::allocate(bytes);
    EXPECT_TRUE(buffer);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    std::memset(buffer.data(), 0xAB, bytes);
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0xAB});
  }
}

TEST_F(BufferTest, MayHaveNoBytes) {
  const Buffer buffer = Buffer::allocate(0);
  EXPECT_TRUE(buffer);
  EXPECT_NE(buffer.data(), nullptr);
  EXPECT_EQ(buffer.bytes(), 0u);
  EXPECT_TRUE(buffer.unique());
}

TEST_F(BufferTest, CopiesShareAndMovesPassOn) {
  Buffer a = Buffer::allocate(10);
  std::byte* const data = a.data();
  EXPECT_TRUE(a.unique());
  Buffer b = a;
  EXPECT_EQ(b.data(), data);
  EXPECT_FALSE(a.unique());
  EXPECT_FALSE(b.unique());
  Buffer c = std::move(a);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT: what a moved-from buffer is, is specified
  EXPECT_FALSE(c.unique());
  b = Buffer();
  EXPECT_TRUE(c.unique());
  a = c;
  EXPECT_FALSE(c.unique());
  c = std::move(a);
  EXPECT_TRUE(c.unique());
  EXPECT_EQ(c.data(), data);
  Buffer& same = c;
  c = same;
  c = std::move(same);
  EXPECT_EQ(c.data(), data);
  EXPECT_TRUE(c.unique());
}

void expect_out_of_memory(std::size_t bytes) {
  try {
    Buffer::allocate(bytes);
    FAIL() << bytes;
  } catch (const taut::Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("Buffer::allocate: out of memory: asked for " + std::to_string(bytes) + " bytes"),
              0u)
        << message;
  }
}

TEST_F(BufferTest, ThrowsWithTheSizeIfThereIsNoMemory) {
  expect_out_of_memory(std::numeric_limits<std::size_t>::max());
  expect_out_of_memory(std::numeric_limits<std::size_t>::max() - 64);
  expect_out_of_memory(max_bytes + 1);
  expect_out_of_memory(
      max_bytes);  // sanitizers abort here, if they do not run with allocator_may_return_null=1
  EXPECT_EQ(live(), 0u);
}

// ---- Pool

TEST_F(PoolTest, CountsWhatIsLiveAndWhatIsCached) {
  Buffer a = Buffer::allocate(1000);
  EXPECT_EQ(live(), taken_for(1000));
  EXPECT_EQ(Pool::cached_bytes(), 0u);
  Buffer b = Buffer::allocate(100000), shared = b;
  EXPECT_EQ(live(), taken_for(1000) + taken_for(100000));
  a = {};
  b = {};
  EXPECT_EQ(live(), taken_for(100000));
  EXPECT_EQ(Pool::cached_bytes(), taken_for(1000));
  shared = {};
  EXPECT_EQ(live(), 0u);
  EXPECT_EQ(Pool::cached_bytes(), taken_for(1000) + taken_for(100000));
  Pool::trim();
  EXPECT_EQ(Pool::cached_bytes(), 0u);
}

TEST_F(PoolTest, HandsOutTheLastReleasedBlockOfTheClassAgain) {
  Buffer a = Buffer::allocate(1000), b = Buffer::allocate(1000);
  const std::byte* const first = a.data();
  const std::byte* const second = b.data();
  a = {};
  b = {};
  const Buffer other = Buffer::allocate(2000);
  EXPECT_NE(other.data(), first);
  EXPECT_NE(other.data(), second);
  const Buffer c = Buffer::allocate(900);
  EXPECT_EQ(c.data(), second);
  EXPECT_EQ(c.bytes(), 900u);
  const Buffer d = Buffer::allocate(1024);
  EXPECT_EQ(d.data(), first);
  EXPECT_EQ(Pool::cached_bytes(), 0u);
}

TEST_F(PoolTest, GivesBackTheOldestBlocksBeyondTheLimit) {
  Pool::cache_limit(taken_for(1000) + taken_for(3000));
  EXPECT_EQ(Pool::cache_limit(), taken_for(1000) + taken_for(3000));
  Buffer a = Buffer::allocate(1000), b = Buffer::allocate(2000), c = Buffer::allocate(3000);
  const std::byte* const kept = c.data();
  a = {};
  b = {};
  EXPECT_EQ(Pool::cached_bytes(), taken_for(1000) + taken_for(2000));
  c = {};  // the limit would allow a and c, but a is older than b
  EXPECT_EQ(Pool::cached_bytes(), taken_for(3000));
  c = Buffer::allocate(3000);
  EXPECT_EQ(c.data(), kept);
}

TEST_F(PoolTest, CachesNothingLargerThanTheLimit) {
  Pool::cache_limit(taken_for(1000));
  Buffer::allocate(1025);
  EXPECT_EQ(Pool::cached_bytes(), 0u);
  Buffer::allocate(1000);
  EXPECT_EQ(Pool::cached_bytes(), taken_for(1000));
  Pool::cache_limit(taken_for(1000) - 1);
  EXPECT_EQ(Pool::cached_bytes(), 0u);
}

TEST_F(PoolTest, CachesNothingIfTheLimitIsZero) {
  Pool::cache_limit(0);
  Buffer::allocate(1);
  EXPECT_EQ(Pool::cached_bytes(), 0u);
  EXPECT_EQ(live(), 0u);
}

TEST_F(PoolTest, ReusesBlocksLargerThanHugePages) {
  const std::size_t bytes = 3 * taut::cpu::detail::huge_page;
  const std::byte* data = nullptr;
  for (int i = 0; i < 2; ++i) {
    const Buffer buffer = Buffer::allocate(bytes);
    std::memset(buffer.data(), i, bytes);
    if (i > 0) {
      EXPECT_EQ(buffer.data(), data);
    }
    data = buffer.data();
  }
}

/// Fills a buffer with a value by which a later owner's mistake would show.
void mark(const Buffer& buffer, std::uint64_t value) {
  for (std::size_t i = 0; i + 8 <= buffer.bytes(); i += 8) std::memcpy(buffer.data() + i, &value, 8);
}
bool is_marked(const Buffer& buffer, std::uint64_t value) {
  for (std::size_t i = 0; i + 8 <= buffer.bytes(); i += 8)
    if (std::memcmp(buffer.data() + i, &value, 8) != 0) return false;
  return true;
}

struct Marked {
  Buffer buffer;
  std::uint64_t value = 0;
};

// Against a model: what is live is the sum over the buffers held, no two of which overlap.
TEST_F(PoolTest, KeepsAccountsInRandomOrder) {
  Pool::cache_limit(100000);
  taut::Rng rng(1);
  std::vector<Marked> held;
  std::size_t expected = 0;
  for (std::uint64_t step = 1; step <= 20000; ++step) {
    if (held.empty() || rng.integer(100) < 51) {
      const std::size_t bytes = rng.integer(std::uint64_t{1} << rng.integer(16));
      held.push_back({Buffer::allocate(bytes), step});
      mark(held.back().buffer, step);
      expected += taken_for(bytes);
    } else {
      std::swap(held[rng.integer(held.size())], held.back());
      ASSERT_TRUE(is_marked(held.back().buffer, held.back().value));
      expected -= taken_for(held.back().buffer.bytes());
      held.pop_back();
    }
    if (rng.integer(1000) == 0) Pool::trim();
    ASSERT_EQ(live(), expected);
    ASSERT_LE(Pool::cached_bytes(), 100000u);
  }
}

// Threads allocate, share, pass to each other through a table, release and trim, all at random.
TEST_F(PoolTest, IsSafeBetweenThreads) {
  Pool::cache_limit(1 << 20);
  struct Slot {
    std::mutex mutex;
    Marked marked;
  };
  std::vector<Slot> table(32);
  std::atomic<int> damaged = 0;
  const auto work = [&](std::uint64_t number) {
    taut::Rng rng = taut::Rng(2).fork(number);
    std::vector<Marked> own;
    for (std::uint64_t step = 0; step < 10000; ++step) {
      Slot& slot = table[rng.integer(table.size())];
      switch (rng.integer(5)) {
        case 0: {  // put a new buffer into the table, and drop what was there
          Marked fresh{Buffer::allocate(rng.integer(5000)), number << 32 | step};
          mark(fresh.buffer, fresh.value);
          const std::lock_guard lock(slot.mutex);
          std::swap(slot.marked, fresh);
          damaged += !is_marked(fresh.buffer, fresh.value);
          break;
        }
        case 1: {  // share what is in the table
          const std::lock_guard lock(slot.mutex);
          own.push_back(slot.marked);
          break;
        }
        case 2: {  // take it, and write if nobody else has it
          Marked taken;
          {
            const std::lock_guard lock(slot.mutex);
            taken = std::move(slot.marked);
          }
          damaged += !is_marked(taken.buffer, taken.value);
          if (taken.buffer.unique()) mark(taken.buffer, step);
          break;
        }
        case 3:
          for (const Marked& marked : own) damaged += !is_marked(marked.buffer, marked.value);
          own.clear();
          break;
        default:
          if (rng.integer(100) == 0) Pool::trim();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t number = 1; number <= 4; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  std::size_t expected = 0;
  for (const Slot& slot : table)
    if (slot.marked.buffer) expected += taken_for(slot.marked.buffer.bytes());
  EXPECT_EQ(live(), expected);
  EXPECT_LE(Pool::cached_bytes(), std::size_t{1} << 20);
  table = std::vector<Slot>(1);
}

TEST_F(PoolTest, TakesBackWhatAnotherThreadAllocated) {
  Buffer buffer;
  std::thread([&] { buffer = Buffer::allocate(777); }).join();
  EXPECT_TRUE(buffer.unique());
  std::thread([moved = std::move(buffer)]() mutable { moved = {}; }).join();
  EXPECT_EQ(live(), 0u);
  EXPECT_EQ(Pool::cached_bytes(), taken_for(777));
}

#if TAUT_ADDRESS_SANITIZER
TEST_F(PoolTest, LetsAddressSanitizerSeeMisuse) {
  EXPECT_DEATH(
      {
        const Buffer buffer = Buffer::allocate(100);
        buffer.data()[100] = std::byte{1};
      },
      "use-after-poison");
  EXPECT_DEATH(
      {
        std::byte* const data = Buffer::allocate(100).data();
        data[0] = std::byte{1};
      },
      "use-after-poison");
  EXPECT_DEATH(
      {
        Buffer::allocate(128);
        const Buffer reused = Buffer::allocate(65);
        reused.data()[65] = std::byte{1};
      },
      "use-after-poison");
}
#endif

// Destroyed after everything else in the program, when no pool object could be alive any more.
Buffer at_exit = Buffer::allocate(1000);

}  // namespace
