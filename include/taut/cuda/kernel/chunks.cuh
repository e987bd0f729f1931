#pragma once
// Many arrays in one launch: of each a kernel is told where it is, and of which block its first chunk is. A
// block takes a chunk of one array, which it finds by the chunks that the arrays before it have. What one
// launch's arguments cannot name goes to the next.

#include "launch.cuh"

namespace taut::cuda {

/// The elements of an item that a block takes: from `begin` to before `end`.
struct Chunk {
  int item;
  std::int64_t begin, end;
};

/// The items of one launch, which have a `size` and are cut into chunks of `each`; kernels take 4 KiB of
/// arguments, of which others have a part.
template <class Item, int each> struct ChunkTable {
  static constexpr int capacity = 3072 / static_cast<int>(sizeof(Item) + 4);
  Item items[capacity];
  std::uint32_t first_block[capacity + 1] = {};
  int count = 0;

  void add(const Item& item) {
    items[count] = item;
    first_block[count + 1] = first_block[count] + blocks_covering(item.size, each);
    ++count;
  }
  unsigned blocks() const { return first_block[count]; }

  /// The chunk of a block.
  __device__ Chunk chunk(unsigned block) const {
    int low = 0, high = count;  // the item is the last one that begins at this block or before
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_block[middle] <= block)
        low = middle;
      else
        high = middle;
    }
    const std::int64_t begin = std::int64_t{block - first_block[low]} * each, size = items[low].size;
    return {low, begin, begin + each < size ? begin + each : size};
  }
};

/// Calls launch_table(table) for tables of all of the items, in order, but for those without elements.
template <int each, class Item, class Launch>
void for_each_table(const Item* items, int count, const Launch& launch_table) {
  using Table = ChunkTable<Item, each>;
  for (int begin = 0; begin < count; begin += Table::capacity) {
    Table table;
    for (int k = begin; k < count && k < begin + Table::capacity; ++k) table.add(items[k]);
    if (table.blocks() > 0) launch_table(table);
  }
}

}  // namespace taut::cuda
