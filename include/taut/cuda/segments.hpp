#pragma once
// The segments that a pool takes from the device, and the blocks that they are cut into.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../core/sanitizer.hpp"
#include "device_memory.hpp"
#include "pool_block.hpp"

#if TAUT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace taut::cuda {

/// Of the memory that a pool has. Blocks are counted as large as they are, a little more than asked for.
struct PoolStatistics {
  std::size_t live = 0;         ///< bytes that buffers hold
  std::size_t peak = 0;         ///< the most that `live` has been
  std::size_t cached = 0;       ///< bytes taken from the device that no buffer holds
  std::size_t graphs = 0;       ///< of these, bytes that graphs keep
  std::size_t allocations = 0;  ///< how often memory was taken from the device
  std::size_t releases = 0;     ///< how often some was given back
};

/// How a pool measures.
struct PoolSizes {
  /// Sizes are multiples of `granule`, of `large_granule` if they are above `small_limit`. Segments are of
  /// the given sizes, or as large as a request that is larger.
  static constexpr std::size_t granule = 512, large_granule = std::size_t{64} << 10;
  static constexpr std::size_t small_limit = std::size_t{1} << 20;
  static constexpr std::size_t small_segment = std::size_t{4} << 20, large_segment = std::size_t{32} << 20;
  /// The most bytes that can be asked for.
  static constexpr std::size_t max_bytes = std::size_t{1} << 47;

  static constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }
};

namespace detail {

/// All memory that a pool has. What is free lies in lists of blocks, of which one, for what no queued work
/// uses, is kept here. Not thread-safe.
class Segments : PoolSizes {
 public:
  explicit Segments(DeviceMemory& memory) : memory_(memory) {
    nobody_.stream = reinterpret_cast<Stream>(this);  // the name of no stream
  }
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  /// What anybody may use.
  const FreeList& idle() const { return idle_; }

  /// In the place of a stream where there is none.
  StreamMemory* nobody() { return &nobody_; }

  /// A new segment as one block; null if the device has none.
  Block* grow(Pool& pool, bool small, std::size_t capacity) {
    const std::size_t least = round_up(capacity, std::size_t{2} << 20);
    std::size_t bytes = std::max(least, small ? small_segment : large_segment);
    // Small blocks live the longest and lie in between each other: room to spare lets a step become steady.
    if (small) bytes = std::max(bytes, round_up(small_bytes_ / 4, small_segment));
    void* memory = memory_.allocate(bytes);
    if (memory == nullptr && least < bytes) memory = memory_.allocate(bytes = least);
    if (memory == nullptr) return nullptr;
    ++statistics.allocations;
    statistics.cached += bytes;
    if (small) small_bytes_ += bytes;
    auto* const block = new Block;
    block->memory = static_cast<std::byte*>(memory);
    block->capacity = bytes;
    block->pool = &pool;
    block->small = small;
    poison(block->memory, bytes);
    segments_.push_back(block);
    put_idle(block);
    return block;
  }

  /// Takes a block out of its list, but for what is not needed.
  void cut(Block* block, std::size_t capacity) {
    FreeList& list = *block->list;
    list.erase(block);
    if (block->capacity == capacity) return;
    auto* const rest = new Block;
    rest->memory = block->memory + capacity;
    rest->capacity = block->capacity - capacity;
    rest->pool = block->pool;
    rest->home = block->home;
    rest->stamp = block->stamp;
    rest->born_in = block->born_in;
    rest->small = block->small;
    if (block->uses) rest->uses = std::make_unique<detail::Uses>(*block->uses);
    rest->before = block;
    rest->after = std::exchange(block->after, rest);
    if (rest->after != nullptr) rest->after->before = rest;
    block->capacity = capacity;
    list.insert(rest);
  }

  /// Adds a block to a list, merged with its free neighbours as far as they may be used by the same.
  void put(FreeList& list, Block* block) {
    const auto joins = [&](const Block* other) {
      if (other == nullptr || other->list == nullptr) return false;
      return other->list == &list || (other->list == &idle_ && &list == &block->home->free);
    };
    if (joins(block->before)) block = join(block->before, block);
    if (joins(block->after)) block = join(block, block->after);
    list.insert(block);
  }

  /// Makes a block anybody's.
  void put_idle(Block* block) {
    block->home = &nobody_;
    block->stamp = 0;
    put(idle_, block);
  }

  /// Gives back the segments that are anybody's as a whole.
  void release_idle() {
    for (const bool small : {false, true}) {
      std::vector<Block*> segments;
      for (Block* block : idle_.blocks(small))
        if (block->is_segment()) segments.push_back(block);
      for (Block* block : segments) {
        idle_.erase(block);
        std::erase(segments_, block);
        if (small) small_bytes_ -= block->capacity;
        statistics.cached -= block->capacity;
        ++statistics.releases;
        unpoison(block->memory, block->capacity);
        memory_.release(block->memory);
        delete block;
      }
    }
  }

  /// Calls f with each block.
  template <class F> void for_each(const F& f) {
    for (Block* block : segments_)
      for (; block != nullptr; block = block->after) f(*block);
  }

  /// Lets AddressSanitizer see every access to memory that is free, if it could be accessed.
  void poison([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t bytes) const {
#if TAUT_ADDRESS_SANITIZER
    if (memory_.on_host()) ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
  }

  /// The opposite.
  void unpoison([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t bytes) const {
#if TAUT_ADDRESS_SANITIZER
    if (memory_.on_host()) ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
  }

  /// The same for memory that is handed out. Its contents are NaN.
  void uncover(std::byte* begin, std::size_t bytes) const {
    unpoison(begin, bytes);
    if (memory_.on_host()) std::memset(begin, 0xFF, bytes);
  }

  PoolStatistics statistics;

 private:
  /// Two neighbours as one block, which is the lower one, in no list.
  Block* join(Block* low, Block* high) {
    Block* const absorbed = low->list != nullptr ? low : high;
    absorbed->list->erase(absorbed);
    Block* const kept = absorbed == low ? high : low;
    low->home = kept->home;
    low->born_in = kept->born_in;
    low->uses = std::move(kept->uses);
    low->stamp = std::max(low->stamp, high->stamp);
    low->capacity += high->capacity;
    low->after = high->after;
    if (low->after != nullptr) low->after->before = low;
    delete high;
    return low;
  }

  DeviceMemory& memory_;
  StreamMemory nobody_;
  FreeList idle_;
  std::vector<Block*> segments_;  ///< the first block of each
  std::size_t small_bytes_ = 0;   ///< of segments for small requests
};

}  // namespace detail
}  // namespace taut::cuda
