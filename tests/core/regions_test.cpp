#include <gtest/gtest.h>
#include <taut/core/random.hpp>
#include <taut/core/regions.hpp>

#include <cstring>
#include <thread>
#include <vector>

namespace {

using taut::cpu::detail::huge_page;
using taut::cpu::detail::Regions;

struct Block {
  std::byte* memory;
  std::size_t bytes;
  unsigned char mark;
};

Block take(std::size_t bytes, unsigned char mark = 0) {
  auto* const memory = static_cast<std::byte*>(Regions::take(bytes));
  if (memory != nullptr) std::memset(memory, mark, bytes);
  return {memory, bytes, mark};
}

bool is_intact(const Block& block) {
  for (std::size_t i = 0; i < block.bytes; ++i)
    if (block.memory[i] != std::byte{block.mark}) return false;
  return true;
}

void give_back(const Block& block) { Regions::give_back(block.memory, block.bytes); }

TEST(Regions, AreMappedAtTheFirstBlockAndGoWithTheLast) {
  EXPECT_EQ(Regions::mapped_bytes(), 0u);
  const Block a = take(64), b = take(huge_page);
  EXPECT_EQ(Regions::mapped_bytes() % huge_page, 0u);
  EXPECT_GT(Regions::mapped_bytes(), huge_page);
  give_back(a);
  EXPECT_GT(Regions::mapped_bytes(), huge_page);
  EXPECT_TRUE(is_intact(b));
  give_back(b);
  EXPECT_EQ(Regions::mapped_bytes(), 0u);
}

TEST(Regions, MergeFreeNeighboursInEveryOrder) {
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    const Block first = take(64, 1);
    const Block parts[] = {take(3 * huge_page, 2), take(4 * huge_page, 3), take(2 * huge_page, 4)};
    const Block last = take(64, 5);
    const auto mapped = Regions::mapped_bytes();
    for (const int i : order) give_back(parts[i]);
    const Block whole = take(9 * huge_page, 6);
    EXPECT_EQ(whole.memory, parts[0].memory);
    EXPECT_EQ(Regions::mapped_bytes(), mapped);
    EXPECT_TRUE(is_intact(first) && is_intact(last) && is_intact(whole));
    give_back(first), give_back(whole), give_back(last);
    EXPECT_EQ(Regions::mapped_bytes(), 0u);
  }
}

TEST(Regions, HaveRoomForBlocksOfAnySize) {
  std::vector<Block> blocks;
  for (const std::size_t bytes :
       {std::size_t{64}, 16 * huge_page - 64, 16 * huge_page, 16 * huge_page + 64, 40 * huge_page}) {
    blocks.push_back(take(bytes, static_cast<unsigned char>(blocks.size())));
    ASSERT_NE(blocks.back().memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % 64, 0u);
  }
  for (const Block& block : blocks) EXPECT_TRUE(is_intact(block));
  for (const Block& block : blocks) give_back(block);
  EXPECT_EQ(Regions::mapped_bytes(), 0u);
}

TEST(Regions, HaveNoMemoryThatTheSystemHasNot) {
  EXPECT_EQ(Regions::take(std::size_t{1} << 47), nullptr);
  EXPECT_EQ(Regions::mapped_bytes(), 0u);
}

/// Takes and gives back at random, and checks that no block is written to by another's owner.
void run_at_random(std::uint64_t seed) {
  taut::Rng rng{seed};
  std::vector<Block> blocks;
  for (int step = 0; step < 600; ++step) {
    if (blocks.size() < 20 || rng.integer(2) == 0) {
      const auto bytes = 64 * (1 + rng.integer(std::uint64_t{1} << (4 + rng.integer(12))));
      blocks.push_back(take(bytes, static_cast<unsigned char>(rng.integer(256))));
      ASSERT_NE(blocks.back().memory, nullptr);
    } else {
      const auto index = rng.integer(blocks.size());
      ASSERT_TRUE(is_intact(blocks[index]));
      give_back(blocks[index]);
      blocks[index] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) {
    ASSERT_TRUE(is_intact(block));
    give_back(block);
  }
}

TEST(Regions, KeepBlocksApartInRandomOrder) {
  run_at_random(1);
  EXPECT_EQ(Regions::mapped_bytes(), 0u);
}

TEST(Regions, AreSafeBetweenThreads) {
  std::vector<std::jthread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) threads.emplace_back(run_at_random, seed);
  threads.clear();
  EXPECT_EQ(Regions::mapped_bytes(), 0u);
}

}  // namespace
