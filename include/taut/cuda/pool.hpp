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
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "segments.hpp"

namespace taut::cuda {

/// A caching allocator of one device's memory. Thread-safe.
class Pool : public PoolSizes {
 public:
  explicit Pool(DeviceMemory& memory) : memory_(memory), segments_(memory) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Gives everything back. No buffer and no `GraphMemory` may be left.
  ~Pool() { trim(); }

  /// Waits for the work of all streams that are not being captured, and gives segments back to the device of
  /// which nothing is in use.
  void trim() {
    const std::lock_guard lock(mutex_);
    finish_all();
    segments_.release_idle();
  }

  PoolStatistics statistics() const {
    const std::lock_guard lock(mutex_);
    return segments_.statistics;
  }

  /// Lets `peak` start again from what is live.
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    segments_.statistics.peak = segments_.statistics.live;
  }

  /// Must be called before a stream is destroyed, by whoever does it, and not during its capture: waits for
  /// the stream's work. Another stream may get the same name afterwards.
  void forget(Stream stream) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    StreamMemory& memory = found->second;
    finish(memory);
    segments_.for_each([&](Block& block) { forget(block, memory); });
    for (auto& [number, graph] : graphs_)
      if (graph.home == &memory) graph.home = segments_.nobody();
    streams_.erase(found);
  }

 private:
  friend class Buffer;
  friend class GraphMemory;
  using Block = detail::Block;
  using Graph = detail::GraphBlocks;
  using StreamMemory = detail::StreamMemory;

  /// A freed block that other streams may still use, and the events after which they do not.
  struct Deferred {
    Block* block;
    std::vector<Event> events;
  };

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
    if (block == nullptr) block = segments_.grow(*this, small, capacity);
    if (block == nullptr) block = borrow(home, small, capacity);
    if (block == nullptr) {
      finish_all();
      block = find(home, small, capacity);
    }
    if (block == nullptr) {
      segments_.release_idle();
      block = segments_.grow(*this, small, capacity);
    }
    if (block == nullptr) fail(bytes);
    segments_.cut(block, capacity);
    hand_out(block, bytes, home);
    return block;
  }

  /// Takes back a block that nobody refers to any more.
  void release(Block* block) noexcept {
    const std::lock_guard lock(mutex_);
    block->references.store(0, std::memory_order_relaxed);
    segments_.statistics.live -= block->capacity;
    segments_.statistics.cached += block->capacity;
    segments_.poison(block->memory, block->capacity);
    if (const auto graph = graphs_.find(block->born_in); graph != graphs_.end()) --graph->second.live;
    retire(block);
  }

  /// Notes that work which uses the block is about to be put into `stream`.
  void note_use(Block* block, Stream stream) {
    const std::lock_guard lock(mutex_);
    StreamMemory& user = memory_of(stream);
    if (user.graph != 0) {
      add(uses_of(block).graphs, user.graph);
      if (block->born_in != user.graph) add(graphs_.at(user.graph).read, block);
    }
    if (&user != block->home) add(uses_of(block).streams, &user);
  }

  /// Notes that such work writes to the block, of which it has been noted that it uses it.
  void note_write(Block* block, Stream stream) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t graph = memory_of(stream).graph;
    if (graph != 0 && block->born_in != graph) add(graphs_.at(graph).written, block);
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
    // Replays use all of it, also where a buffer is now that is smaller than one before it.
    const auto uncover = [&](const Block& block) { segments_.unpoison(block.memory, block.capacity); };
    for (const Block* block : graphs_.at(graph).held) uncover(*block);
    segments_.for_each([&](const Block& block) {
      if (block.born_in == graph) uncover(block);
    });
  }

  void release_graph(std::uint64_t graph) noexcept {
    end_capture(graph);
    const std::lock_guard lock(mutex_);
    auto node = graphs_.extract(graph);
    Graph& memory = node.mapped();
    const std::vector<Block*> blocks = memory.freed();
    for (Block* block : blocks) {
      segments_.statistics.graphs -= block->capacity;
      if (block->list != nullptr) memory.free.erase(block);
      segments_.poison(block->memory, block->capacity);
    }
    for (Block* block : blocks) retire(block);
  }

  template <class F> auto ask(std::uint64_t graph, const F& question) const {
    const std::lock_guard lock(mutex_);
    return question(graphs_.at(graph));
  }

  // ---- finding memory

  /// A free block that `home` may use at once: of its graph, its own, or anybody's.
  Block* find(StreamMemory& home, bool small, std::size_t capacity) {
    Block* block = home.graph != 0 ? graphs_.at(home.graph).free.best(small, capacity) : nullptr;
    if (block != nullptr) {
      segments_.statistics.graphs -= capacity;
    } else {
      Block* const own = home.free.best(small, capacity);
      Block* const idle = segments_.idle().best(small, capacity);
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

  void hand_out(Block* block, std::size_t bytes, StreamMemory& home) {
    block->references.store(1, std::memory_order_relaxed);
    block->bytes = bytes;
    block->stream.store(home.stream, std::memory_order_relaxed);
    block->home = &home;
    block->uses.reset();
    block->born_in = home.graph;
    if (home.graph != 0) {
      uses_of(block).graphs.push_back(home.graph);
      ++graphs_.at(home.graph).live;
    }
    segments_.statistics.cached -= block->capacity;
    segments_.statistics.live += block->capacity;
    segments_.statistics.peak = std::max(segments_.statistics.peak, segments_.statistics.live);
    segments_.uncover(block->memory, bytes);
  }

  // ---- freeing memory

  /// Puts a block that nobody holds to where it may be used again. If the device fails meanwhile, it never
  /// is.
  void retire(Block* block) noexcept try {
    if (const std::uint64_t graph = graph_of(*block)) {
      segments_.statistics.graphs += block->capacity;
      Graph& memory = graphs_.at(graph);
      if (memory.home->graph != graph) segments_.unpoison(block->memory, block->capacity);  // replays use it
      const bool reusable =
          block->born_in == graph && block->uses->graphs.size() == 1 && block->uses->streams.empty();
      if (reusable)
        segments_.put(memory.free, block);
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
    if (block->home == segments_.nobody()) return segments_.put_idle(block);
    block->stamp = block->home->next;
    segments_.put(block->home->free, block);
  }

  /// Lets a block wait for the streams other than its own that use it. Returns whether there are any.
  bool defer(Block* block) {
    Deferred deferred{block, {}};
    for (StreamMemory* user : block->uses->streams)
      if (user != segments_.nobody()) deferred.events.push_back(memory_.record(user->stream));
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
    for (Block* block : settled) segments_.put_idle(block);
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
  void forget(Block& block, const StreamMemory& memory) {
    if (block.home == &memory) {
      block.home = segments_.nobody();
      block.stream.store(block.home->stream, std::memory_order_relaxed);
    }
    if (block.uses != nullptr) std::erase(block.uses->streams, &memory);
  }

  /// Waits for the work of all streams that are not being captured.
  void finish_all() {
    for (const Deferred& deferred : deferred_)
      for (const Event event : deferred.events) memory_.wait(event);
    settle_deferred();
    for (auto& [stream, memory] : streams_)
      if (memory.graph == 0) finish(memory);
  }

  // ---- small helpers

  static detail::Uses& uses_of(Block* block) {
    if (block->uses == nullptr) block->uses = std::make_unique<detail::Uses>();
    return *block->uses;
  }

  template <class X> static void add(std::vector<X>& list, X item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  /// The runtime's code for a failed allocation.
  static constexpr int out_of_memory = 2;

  [[noreturn, gnu::cold]] void fail(std::size_t bytes) const {
    throw DeviceError("allocation", out_of_memory,
                      "cuda::Buffer::allocate: out of device memory: asked for " + std::to_string(bytes) +
                          " bytes while " + std::to_string(segments_.statistics.live) + " are live and " +
                          std::to_string(segments_.statistics.cached) +
                          " cached; use smaller tensors or batches");
  }

  DeviceMemory& memory_;
  mutable std::mutex mutex_;
  detail::Segments segments_;
  std::map<Stream, StreamMemory> streams_;
  std::map<std::uint64_t, Graph> graphs_;
  std::vector<Deferred> deferred_;
  std::uint64_t last_graph_ = 0;
  std::atomic<int> captures_{0};
};

}  // namespace taut::cuda
