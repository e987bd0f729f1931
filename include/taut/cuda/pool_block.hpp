#pragma once
// What the pool of device memory is made of: blocks, and lists of those that are free.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "device.hpp"

namespace taut::cuda {

class Pool;

namespace detail {

struct Block;
struct StreamMemory;

/// Free blocks by size and, among equals, by address. That the best fit with the lowest address is taken
/// makes a step which asks for the same sizes as the one before get the same memory. Blocks of segments for
/// small requests are kept apart.
class FreeList {
 public:
  /// The smallest block of at least `capacity` bytes, which stays; null if there is none.
  Block* best(bool small, std::size_t capacity) const;
  void insert(Block* block);
  void erase(Block* block);

  /// All free blocks of one kind.
  const auto& blocks(bool small) const { return blocks_[small]; }
  bool empty() const { return blocks_[0].empty() && blocks_[1].empty(); }

 private:
  struct Size {
    std::size_t capacity;
  };
  struct Order {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const;
    bool operator()(const Block* a, Size b) const;
  };

  std::set<Block*, Order> blocks_[2];
};

/// Who else than the stream that a block was allocated on may still use it.
struct Uses {
  std::vector<StreamMemory*> streams;
  std::vector<std::uint64_t> graphs;
};

/// A part of a segment of the device's memory: in use, free, or waiting to be.
struct Block {
  std::atomic<std::size_t> references{0};
  std::size_t bytes = 0;  ///< as requested
  std::byte* memory = nullptr;
  std::size_t capacity = 0;
  Block* before = nullptr;  ///< neighbours in the segment
  Block* after = nullptr;
  Pool* pool = nullptr;
  std::atomic<Stream> stream{nullptr};  ///< what it was allocated on
  StreamMemory* home = nullptr;         ///< of that stream
  FreeList* list = nullptr;             ///< where it is while it is free
  std::uint64_t stamp = 0;              ///< while it is free: see `StreamMemory`; 0 if no work uses it
  std::uint64_t born_in = 0;            ///< the graph in whose capture it was allocated
  bool small = false;                   ///< of a segment for small requests
  std::unique_ptr<Uses> uses;           ///< null if there are none

  bool is_segment() const { return before == nullptr && after == nullptr; }
};

/// The memory of one stream. Time is counted by the events that the pool records there: a block that is
/// freed is stamped with the number of the next one, and is anybody's once that has passed.
struct StreamMemory {
  Stream stream = nullptr;
  FreeList free;
  std::uint64_t next = 1;      ///< the number of the next event
  std::uint64_t passed = 0;    ///< the number of the last event that is known to have passed
  std::uint64_t recorded = 0;  ///< the number of `event`
  Event event = nullptr;       ///< recorded and not known to have passed
  std::uint64_t graph = 0;     ///< what is being captured there
};

/// The memory of one graph.
struct GraphBlocks {
  StreamMemory* home = nullptr;
  FreeList free;                ///< what was allocated and freed during the capture
  std::vector<Block*> held;     ///< what was freed and must not be used by anybody else
  std::size_t live = 0;         ///< how many buffers are held that were allocated during the capture
  std::vector<Block*> read;     ///< what the capture has used of others
  std::vector<Block*> written;  ///< what it has written to of these

  /// Those that nobody holds.
  std::vector<Block*> freed() const;
  std::size_t bytes() const;
  /// Whether what was used is still held, and what was written to by one handle.
  bool is_intact() const;
};

inline std::vector<Block*> GraphBlocks::freed() const {
  std::vector<Block*> blocks = held;
  for (const bool small : {false, true})
    blocks.insert(blocks.end(), free.blocks(small).begin(), free.blocks(small).end());
  return blocks;
}

inline std::size_t GraphBlocks::bytes() const {
  std::size_t sum = 0;
  for (const Block* block : freed()) sum += block->capacity;
  return sum;
}

inline bool GraphBlocks::is_intact() const {
  const auto handles = [](const Block* block) { return block->references.load(std::memory_order_acquire); };
  for (const Block* block : read)
    if (handles(block) == 0) return false;
  for (const Block* block : written)
    if (handles(block) != 1) return false;
  return true;
}

inline bool FreeList::Order::operator()(const Block* a, const Block* b) const {
  return a->capacity != b->capacity ? a->capacity < b->capacity : a->memory < b->memory;
}

inline bool FreeList::Order::operator()(const Block* a, Size b) const { return a->capacity < b.capacity; }

inline Block* FreeList::best(bool small, std::size_t capacity) const {
  const auto found = blocks_[small].lower_bound(Size{capacity});
  return found == blocks_[small].end() ? nullptr : *found;
}

inline void FreeList::insert(Block* block) {
  blocks_[block->small].insert(block);
  block->list = this;
}

inline void FreeList::erase(Block* block) {
  blocks_[block->small].erase(block);
  block->list = nullptr;
}

}  // namespace detail
}  // namespace taut::cuda
