#pragma once
// The memory of tensors on the device: `cuda::Pool`, a caching allocator that follows the order of streams.
//
// Asking the device for memory waits for all of its work, so a training step must not do it. The pool takes
// large segments, cuts blocks from them, keeps what is freed, and merges free neighbours. A block is freed
// while work that uses it is still queued: its own stream may have it again at once, since what comes next
// runs after that; any other only when an event that was recorded after it has passed. Events are recorded
// when another stream asks, not for each block, so that a program with one stream needs none.
//
// What is allocated while a stream is being captured into a graph belongs to the graph, whose replays will
// write to it; so does what the capture only uses, if it is freed. See `GraphMemory`.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../core/sanitizer.hpp"
#include "pool_block.hpp"

#if TAUT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace taut::cuda {

/// What the pool needs of a device; tests put a model of one in its place. All of it may be called while
/// streams are being captured, but for `record`, `wait` and events of a stream that is.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Memory aligned to 256 bytes; null if there is not enough.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Gives memory back that no work uses any more.
  virtual void release(void* memory) noexcept = 0;

  /// A new event, recorded in the stream.
  virtual Event record(Stream stream) = 0;
  virtual void destroy(Event event) noexcept = 0;
  virtual bool has_passed(Event event) = 0;
  /// Makes the stream wait, or the host.
  virtual void wait(Stream stream, Event event) = 0;
  virtual void wait(Event event) = 0;

  /// Whether the host can touch the memory. The pool then fills what it hands out with bytes of 0xFF, of
  /// which floats are NaN, and AddressSanitizer sees every access beyond the size that was asked for.
  virtual bool on_host() const { return false; }
};

/// Of the memory that a pool has. Blocks are counted as large as they are, a little more than asked for.
struct PoolStatistics {
  std::size_t live = 0;         ///< bytes that buffers hold
  std::size_t peak = 0;         ///< the most that `live` has been
  std::size_t cached = 0;       ///< bytes taken from the device that no buffer holds
  std::size_t graphs = 0;       ///< of these, bytes that graphs keep
  std::size_t allocations = 0;  ///< how often memory was taken from the device
  std::size_t releases = 0;     ///< how often some was given back
};

/// A caching allocator of one device's memory. Thread-safe.
class Pool {
 public:
  /// Sizes are multiples of `granule`, of `large_granule` if they are above `small_limit`. Segments are of
  /// the given sizes, or as large as a request that is larger.
  static constexpr std::size_t granule = 512, large_granule = std::size_t{64} << 10;
  static constexpr std::size_t small_limit = std::size_t{1} << 20;
  static constexpr std::size_t small_segment = std::size_t{4} << 20, large_segment = std::size_t{32} << 20;
  /// The most bytes that can be asked for.
  static constexpr std::size_t max_bytes = std::size_t{1} << 47;

  explicit Pool(DeviceMemory& memory) : memory_(memory) {
    nobody_.stream = reinterpret_cast<Stream>(this);  // the name of no stream
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Gives everything back. No buffer and no `GraphMemory` may be left.
  ~Pool() { trim(); }

  /// Waits for the work of all streams that are not being captured, and gives segments back to the device of
  /// which nothing is in use.
  void trim() {
    const std::lock_guard lock(mutex_);
    finish_all();
    release_segments();
  }

  PoolStatistics statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

  /// Lets `peak` start again from what is live.
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    statistics_.peak = statistics_.live;
  }

  /// Must be called before a stream is destroyed, by whoever does it, and not during its capture: waits for
  /// the stream's work. Another stream may get the same name afterwards.
  void forget(Stream stream) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    StreamMemory& memory = found->second;
    finish(memory);
    for (Block* block : segments_)
      for (; block != nullptr; block = block->after) forget(block, memory);
    for (auto& [number, graph] : graphs_)
      if (graph.home == &memory) graph.home = &nobody_;
    streams_.erase(found);
  }

 private:
  friend class Buffer;
  friend class GraphMemory;
  using Block = detail::Block;
  using FreeList = detail::FreeList;
  using StreamMemory = detail::StreamMemory;

  /// A freed block that other streams may still use, and the events after which they do not.
  struct Deferred {
    Block* block;
    std::vector<Event> events;
  };

  /// The memory of one graph.
  struct Graph {
    StreamMemory* home;
    FreeList free;             ///< what was allocated and freed during the capture
    std::vector<Block*> held;  ///< what was freed and must not be used by anybody else
  };

  static constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }

  // ---- for Buffer

  /// A block with one reference for work that is put into `stream` from now on. Throws `DeviceError` if there
  /// is no memory.
  Block* acquire(std::size_t bytes, Stream stream) {
    const std::lock_guard lock(mutex_);
    if (bytes > max_bytes) fail(bytes);
    const bool small = bytes <= small_limit;
    const std::size_t capacity = round_up(std::max<std::size_t>(bytes, 1), small ? granule : large_granule);
    StreamMemory& home = memory_of(stream);
    Block* block = find(home, small, capacity);
    if (block == nullptr && settle(home)) block = find(home, small, capacity);
    if (block == nullptr) block = grow(small, capacity);
    if (block == nullptr) block = borrow(home, small, capacity);
    if (block == nullptr) {
      finish_all();
      block = find(home, small, capacity);
    }
    if (block == nullptr) {
      release_segments();
      block = grow(small, capacity);
    }
    if (block == nullptr) fail(bytes);
    cut(block, capacity);
    hand_out(block, bytes, home);
    return block;
  }

  /// Takes back a block that nobody refers to any more.
  void release(Block* block) noexcept {
    const std::lock_guard lock(mutex_);
    statistics_.live -= block->capacity;
    statistics_.cached += block->capacity;
    poison(block->memory, block->capacity);
    retire(block);
  }

  /// Notes that work which uses the block is about to be put into `stream`.
  void note_use(Block* block, Stream stream) {
    const std::lock_guard lock(mutex_);
    StreamMemory& user = memory_of(stream);
    if (user.graph != 0) add(uses_of(block).graphs, user.graph);
    if (&user != block->home) add(uses_of(block).streams, &user);
  }

  /// Whether any stream is being captured.
  bool is_capturing() const { return captures_.load(std::memory_order_relaxed) > 0; }

  // ---- for GraphMemory

  std::uint64_t begin_capture(Stream stream) {
    const std::lock_guard lock(mutex_);
    StreamMemory& home = memory_of(stream);
    if (home.graph != 0) throw Error("GraphMemory: the stream is being captured already");
    home.graph = ++last_graph_;
    graphs_[home.graph].home = &home;
    captures_.fetch_add(1, std::memory_order_relaxed);
    return home.graph;
  }

  void end_capture(std::uint64_t graph) noexcept {
    const std::lock_guard lock(mutex_);
    StreamMemory& home = *graphs_.at(graph).home;
    if (home.graph != graph) return;
    home.graph = 0;
    captures_.fetch_sub(1, std::memory_order_relaxed);
  }

  void release_graph(std::uint64_t graph) noexcept {
    end_capture(graph);
    const std::lock_guard lock(mutex_);
    auto node = graphs_.extract(graph);
    Graph& memory = node.mapped();
    std::vector<Block*> blocks = std::move(memory.held);
    for (const bool small : {false, true})
      blocks.insert(blocks.end(), memory.free.blocks(small).begin(), memory.free.blocks(small).end());
    for (Block* block : blocks) {
      statistics_.graphs -= block->capacity;
      if (block->list != nullptr) memory.free.erase(block);
    }
    for (Block* block : blocks) retire(block);
  }

  std::size_t graph_bytes(std::uint64_t graph) const {
    const std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    const Graph& memory = graphs_.at(graph);
    for (const Block* block : memory.held) bytes += block->capacity;
    for (const bool small : {false, true})
      for (const Block* block : memory.free.blocks(small)) bytes += block->capacity;
    return bytes;
  }

  // ---- finding memory

  /// A free block that `home` may use at once: of its graph, its own, or anybody's.
  Block* find(StreamMemory& home, bool small, std::size_t capacity) {
    Block* block = home.graph != 0 ? graphs_.at(home.graph).free.best(small, capacity) : nullptr;
    if (block != nullptr) {
      statistics_.graphs -= capacity;
    } else {
      Block* const own = home.free.best(small, capacity);
      Block* const idle = idle_.best(small, capacity);
      block = own == nullptr || (idle != nullptr && idle->capacity < own->capacity) ? idle : own;
    }
    return block;
  }

  /// Makes blocks anybody's whose streams, other than `home`, have come past their last use. Returns whether
  /// there are any.
  bool settle(StreamMemory& home) {
    bool any = settle_deferred();
    for (auto& [stream, memory] : streams_) {
      if (&memory == &home || memory.graph != 0 || memory.free.empty()) continue;
      if (memory.event == nullptr) record(memory);
      if (memory_.has_passed(memory.event)) pass(memory);
      any |= settle_free(memory);
    }
    return any;
  }

  /// A new segment as one block; null if the device has none.
  Block* grow(bool small, std::size_t capacity) {
    const std::size_t least = round_up(capacity, std::size_t{2} << 20);
    std::size_t bytes = std::max(least, small ? small_segment : large_segment);
    // Small blocks live the longest and lie in between each other: room to spare lets a step become steady.
    if (small) bytes = std::max(bytes, round_up(small_bytes_ / 4, small_segment));
    void* memory = memory_.allocate(bytes);
    if (memory == nullptr && least < bytes) memory = memory_.allocate(bytes = least);
    if (memory == nullptr) return nullptr;
    ++statistics_.allocations;
    statistics_.cached += bytes;
    if (small) small_bytes_ += bytes;
    auto* const block = new Block;
    block->memory = static_cast<std::byte*>(memory);
    block->capacity = bytes;
    block->pool = this;
    block->small = small;
    poison(block->memory, bytes);
    segments_.push_back(block);
    put_idle(block);
    return block;
  }

  /// A free block of another stream, whose work `home` is made to wait for; null if there is none.
  Block* borrow(StreamMemory& home, bool small, std::size_t capacity) {
    if (home.graph != 0) return nullptr;  // a capture cannot wait for what is outside of it
    Block* best = nullptr;
    StreamMemory* owner = nullptr;
    for (auto& [stream, memory] : streams_) {
      if (&memory == &home || memory.graph != 0) continue;
      Block* const block = memory.free.best(small, capacity);
      if (block != nullptr && (best == nullptr || block->capacity < best->capacity))
        best = block, owner = &memory;
    }
    if (best == nullptr) return nullptr;
    if (owner->event == nullptr || owner->recorded < best->stamp) record(*owner);
    memory_.wait(home.stream, owner->event);
    return best;
  }

  /// Takes a block out of its list, but for what is not needed.
  void cut(Block* block, std::size_t capacity) {
    FreeList& list = *block->list;
    list.erase(block);
    if (block->capacity == capacity) return;
    auto* const rest = new Block;
    rest->memory = block->memory + capacity;
    rest->capacity = block->capacity - capacity;
    rest->pool = this;
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

  void hand_out(Block* block, std::size_t bytes, StreamMemory& home) {
    block->references.store(1, std::memory_order_relaxed);
    block->bytes = bytes;
    block->stream.store(home.stream, std::memory_order_relaxed);
    block->home = &home;
    block->uses.reset();
    block->born_in = home.graph;
    if (home.graph != 0) uses_of(block).graphs.push_back(home.graph);
    statistics_.cached -= block->capacity;
    statistics_.live += block->capacity;
    statistics_.peak = std::max(statistics_.peak, statistics_.live);
    unpoison(block->memory, bytes);
    if (memory_.on_host()) std::memset(block->memory, 0xFF, bytes);
  }

  // ---- freeing memory

  /// Puts a block that nobody holds to where it may be used again. If the device fails meanwhile, it never
  /// is.
  void retire(Block* block) noexcept try {
    if (const std::uint64_t graph = graph_of(*block)) {
      statistics_.graphs += block->capacity;
      Graph& memory = graphs_.at(graph);
      const bool reusable =
          block->born_in == graph && block->uses->graphs.size() == 1 && block->uses->streams.empty();
      if (reusable)
        put(memory.free, block);
      else
        memory.held.push_back(block);
    } else if (block->uses == nullptr || !defer(block)) {
      free(block);
    }
  } catch (const Error&) {
  }

  /// A graph that still is and uses the block, or 0. Forgets those that are no more. No event can be recorded
  /// in a stream that is being captured: what such a stream uses is left to the graph.
  std::uint64_t graph_of(Block& block) const {
    if (block.uses == nullptr) return 0;
    auto& graphs = block.uses->graphs;
    for (const StreamMemory* user : block.uses->streams)
      if (user->graph != 0) add(graphs, user->graph);
    std::erase_if(graphs, [&](std::uint64_t graph) { return graphs_.find(graph) == graphs_.end(); });
    return graphs.empty() ? 0 : graphs.front();
  }

  void free(Block* block) {
    block->uses.reset();
    block->born_in = 0;
    if (block->home == &nobody_) return put_idle(block);
    block->stamp = block->home->next;
    put(block->home->free, block);
  }

  void put_idle(Block* block) {
    block->home = &nobody_;
    block->stamp = 0;
    put(idle_, block);
  }

  /// Lets a block wait for the streams other than its own that use it. Returns whether there are any.
  bool defer(Block* block) {
    Deferred deferred{block, {}};
    for (StreamMemory* user : block->uses->streams)
      if (user != &nobody_) deferred.events.push_back(memory_.record(user->stream));
    if (deferred.events.empty()) return false;
    deferred_.push_back(std::move(deferred));
    return true;
  }

  bool settle_deferred() {
    const std::size_t before = deferred_.size();
    std::erase_if(deferred_, [&](Deferred& deferred) {
      std::erase_if(deferred.events, [&](Event event) {
        const bool passed = memory_.has_passed(event);
        if (passed) memory_.destroy(event);
        return passed;
      });
      if (!deferred.events.empty()) return false;
      free(deferred.block);
      return true;
    });
    return deferred_.size() < before;
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

  // ---- the streams' time

  StreamMemory& memory_of(Stream stream) {
    StreamMemory& memory = streams_[stream];
    memory.stream = stream;
    return memory;
  }

  /// Records an event after all that has been freed so far.
  void record(StreamMemory& memory) {
    const Event event = memory_.record(memory.stream);
    if (memory.event != nullptr) memory_.destroy(memory.event);
    memory.event = event;
    memory.recorded = memory.next++;
  }

  void pass(StreamMemory& memory) {
    memory_.destroy(std::exchange(memory.event, nullptr));
    memory.passed = memory.recorded;
  }

  /// Makes those free blocks anybody's that the stream has come past. Returns whether there are any.
  bool settle_free(StreamMemory& memory) {
    std::vector<Block*> settled;
    for (const bool small : {false, true})
      for (Block* block : memory.free.blocks(small))
        if (block->stamp <= memory.passed) settled.push_back(block);
    for (Block* block : settled) memory.free.erase(block);
    for (Block* block : settled) put_idle(block);
    return !settled.empty();
  }

  /// Waits for a stream's work, after which its free blocks are anybody's.
  void finish(StreamMemory& memory) {
    record(memory);
    memory_.wait(memory.event);
    pass(memory);
    settle_free(memory);
  }

  /// Takes a stream that has done all of its work out of what is known of a block.
  void forget(Block* block, const StreamMemory& memory) {
    if (block->home == &memory) {
      block->home = &nobody_;
      block->stream.store(nobody_.stream, std::memory_order_relaxed);
    }
    if (block->uses != nullptr) std::erase(block->uses->streams, &memory);
  }

  /// Waits for the work of all streams that are not being captured.
  void finish_all() {
    for (const Deferred& deferred : deferred_)
      for (const Event event : deferred.events) memory_.wait(event);
    settle_deferred();
    for (auto& [stream, memory] : streams_)
      if (memory.graph == 0) finish(memory);
  }

  /// Gives back the segments that are anybody's as a whole.
  void release_segments() {
    for (const bool small : {false, true}) {
      std::vector<Block*> segments;
      for (Block* block : idle_.blocks(small))
        if (block->is_segment()) segments.push_back(block);
      for (Block* block : segments) {
        idle_.erase(block);
        std::erase(segments_, block);
        if (small) small_bytes_ -= block->capacity;
        statistics_.cached -= block->capacity;
        ++statistics_.releases;
        unpoison(block->memory, block->capacity);
        memory_.release(block->memory);
        delete block;
      }
    }
  }

  // ---- small helpers

  static detail::Uses& uses_of(Block* block) {
    if (block->uses == nullptr) block->uses = std::make_unique<detail::Uses>();
    return *block->uses;
  }

  template <class X> static void add(std::vector<X>& list, X item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  void poison([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t bytes) const {
#if TAUT_ADDRESS_SANITIZER
    if (memory_.on_host()) ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
  }

  void unpoison([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t bytes) const {
#if TAUT_ADDRESS_SANITIZER
    if (memory_.on_host()) ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
  }

  /// The runtime's code for a failed allocation.
  static constexpr int out_of_memory = 2;

  [[noreturn, gnu::cold]] void fail(std::size_t bytes) const {
    throw DeviceError("allocation", out_of_memory,
                      "cuda::Buffer::allocate: out of device memory: asked for " + std::to_string(bytes) +
                          " bytes while " + std::to_string(statistics_.live) + " are live and " +
                          std::to_string(statistics_.cached) + " cached; use smaller tensors or batches");
  }

  DeviceMemory& memory_;
  mutable std::mutex mutex_;
  std::map<Stream, StreamMemory> streams_;
  StreamMemory nobody_;           ///< in place of streams that are no more
  std::vector<Block*> segments_;  ///< the first block of each
  std::map<std::uint64_t, Graph> graphs_;
  FreeList idle_;                ///< what no queued work uses: anybody's
  std::size_t small_bytes_ = 0;  ///< of segments for small requests
  std::vector<Deferred> deferred_;
  PoolStatistics statistics_;
  std::uint64_t last_graph_ = 0;
  std::atomic<int> captures_{0};
};

/// The memory of a graph, from the beginning of its capture on. Work that is captured runs when the graph is
/// replayed, so until this object is destroyed nobody else gets what was allocated during the capture, or
/// what was used there and has been freed since. The graph must be replayed in the stream that it was
/// captured from, or that stream wait for it.
class GraphMemory {
 public:
  /// To be made right before the stream's capture begins. Throws `Error` if the stream is being captured.
  GraphMemory(Pool& pool, Stream stream) : pool_(pool), graph_(pool.begin_capture(stream)) {}
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory() { pool_.release_graph(graph_); }

  /// To be called right after the stream's capture has ended, whether it was successful or not.
  void end_capture() noexcept { pool_.end_capture(graph_); }

  /// The bytes that only the graph keeps.
  std::size_t bytes() const { return pool_.graph_bytes(graph_); }

 private:
  Pool& pool_;
  std::uint64_t graph_;
};

}  // namespace taut::cuda
