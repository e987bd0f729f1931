#pragma once
// A model of a device for tests of the pool. Memory is a range of addresses that nobody can touch; streams do
// the work queued in them one by one when they are told to. Whatever is done with memory is checked against
// all that is still queued, and against what graphs may replay.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "taut/cuda/device_memory.hpp"

namespace mock {

inline constexpr int streams = 4;
using Counts = std::array<std::size_t, streams>;

/// The streams are addresses in an array.
inline taut::cuda::Stream stream(int index) {
  static char names[streams];
  return reinterpret_cast<taut::cuda::Stream>(&names[index]);
}
inline int index_of(taut::cuda::Stream name) {
  return static_cast<int>(reinterpret_cast<char*>(name) - reinterpret_cast<char*>(stream(0)));
}

struct Range {
  std::uintptr_t begin, end;

  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

inline Range range_of(const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return {begin, begin + bytes};
}

/// Work that uses memory on behalf of a tenant, who is whatever the memory was handed out to.
struct Work {
  Range range;
  std::uint64_t tenant;
};

class Device final : public taut::cuda::DeviceMemory {
 public:
  /// What a capture has recorded.
  struct Graph {
    int stream = 0;
    std::set<std::uint64_t> born;  ///< tenants that came during the capture
    std::vector<Work> work;
  };

  explicit Device(std::size_t limit) : limit_(limit) {}

  // ---- DeviceMemory

  void* allocate(std::size_t bytes) override {
    ++allocations;
    if (bytes > limit_ - bytes_) return nullptr;
    bytes_ += bytes;
    // Segments adjoin, so that blocks merged across their borders are found out.
    const auto begin = next_address_;
    next_address_ += bytes;
    segments_[begin] = bytes;
    return reinterpret_cast<void*>(begin);
  }

  void release(void* memory) noexcept override {
    const auto found = segments_.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == segments_.end()) {
      ADD_FAILURE() << "releases what is no segment";
      return;
    }
    const Range range{found->first, found->first + found->second};
    for (int s = 0; s < streams; ++s)
      for (const Queued& queued : queues_[s].work)
        EXPECT_FALSE(queued.work.range.overlaps(range)) << "releases memory in use by stream " << s;
    for (const auto& [id, graph] : graphs)
      for (const Work& work : graph.work)
        EXPECT_FALSE(work.range.overlaps(range)) << "releases a graph's memory";
    bytes_ -= found->second;
    segments_.erase(found);
  }

  taut::cuda::Event record(taut::cuda::Stream name) override {
    const int s = index_of(name);
    EXPECT_EQ(capture[s], 0u) << "records an event in a captured stream";
    const auto event = ++last_event_;
    events_[event] = {s, queues_[s].queued, queues_[s].after};
    return reinterpret_cast<taut::cuda::Event>(event);
  }

  void destroy(taut::cuda::Event event) noexcept override {
    EXPECT_EQ(events_.erase(reinterpret_cast<std::uintptr_t>(event)), 1u) << "destroys what is no event";
  }

  bool has_passed(taut::cuda::Event event) override {
    const Mark& mark = events_.at(reinterpret_cast<std::uintptr_t>(event));
    return queues_[mark.stream].done >= mark.count;
  }

  void wait(taut::cuda::Stream name, taut::cuda::Event event) override {
    const int s = index_of(name);
    EXPECT_EQ(capture[s], 0u) << "makes a captured stream wait for what is not captured";
    const Mark& mark = events_.at(reinterpret_cast<std::uintptr_t>(event));
    Counts& after = queues_[s].after;
    for (int i = 0; i < streams; ++i) after[i] = std::max(after[i], mark.after[i]);
    after[mark.stream] = std::max(after[mark.stream], mark.count);
  }

  void wait(taut::cuda::Event event) override {
    const Mark& mark = events_.at(reinterpret_cast<std::uintptr_t>(event));
    run_until(mark.stream, mark.count);
  }

  // ---- what tests do

  /// Lets a tenant's work use memory in a stream, which must not meet anybody else's.
  void use(int s, const Work& work) {
    expect_inside(work.range);
    if (capture[s] != 0) return use_captured(graphs.at(capture[s]), work);
    for (int other = 0; other < streams; ++other)
      for (const Queued& queued : queues_[other].work)
        EXPECT_TRUE(!queued.work.range.overlaps(work.range) || queued.work.tenant == work.tenant ||
                    other == s || queues_[s].after[other] >= queued.number)
            << "memory is used by streams " << other << " and " << s << " at once";
    for (const auto& [id, graph] : graphs)
      for (const Work& replayed : graph.work)
        EXPECT_TRUE(!replayed.range.overlaps(work.range) || replayed.tenant == work.tenant ||
                    graph.born.count(work.tenant))
            << "a graph's memory is used by others";
    queue(s, work);
  }

  /// Makes a stream wait for all that another has been given so far.
  void follow(int s, int other) {
    for (int i = 0; i < streams; ++i)
      queues_[s].after[i] = std::max(queues_[s].after[i], queues_[other].after[i]);
    queues_[s].after[other] = std::max(queues_[s].after[other], queues_[other].queued);
  }

  void replay(const Graph& graph) {
    for (const Work& work : graph.work) queue(graph.stream, work);
  }

  /// Does one piece of a stream's work, and all that it waits for.
  void advance(int s) {
    if (queues_[s].done < queues_[s].queued) run_until(s, queues_[s].done + 1);
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t events() const { return events_.size(); }
  std::size_t limit() const { return limit_; }

  std::uint64_t capture[streams] = {};    ///< the graph that a stream is captured into, or 0
  std::map<std::uint64_t, Graph> graphs;  ///< by number, from 1
  int allocations = 0;                    ///< how often memory was asked for

 private:
  struct Queued {
    Work work;
    std::size_t number;  ///< from 1
    Counts after;        ///< how much of each stream's work comes first
  };
  struct Queue {
    std::size_t queued = 0, done = 0;
    Counts after{};
    std::vector<Queued> work;
  };
  struct Mark {
    int stream;
    std::size_t count;
    Counts after;
  };

  void use_captured(Graph& graph, const Work& work) {
    for (const auto& [id, other] : graphs)
      for (const Work& replayed : other.work)
        if (replayed.range.overlaps(work.range) && replayed.tenant != work.tenant) {
          if (&other == &graph)
            EXPECT_TRUE(graph.born.count(replayed.tenant)) << "a graph overwrites what its replays need";
          else
            EXPECT_TRUE(other.born.count(work.tenant)) << "two graphs share memory";
        }
    graph.work.push_back(work);
  }

  void queue(int s, const Work& work) {
    Queue& queue = queues_[s];
    queue.work.push_back({work, ++queue.queued, queue.after});
  }

  void run_until(int s, std::size_t count) {
    Queue& queue = queues_[s];
    while (queue.done < count && !queue.work.empty()) {
      const Queued next = queue.work.front();
      for (int other = 0; other < streams; ++other)
        if (other != s) run_until(other, next.after[other]);
      queue.work.erase(queue.work.begin());
      queue.done = next.number;
    }
  }

  void expect_inside(const Range& range) const {
    auto found = segments_.upper_bound(range.begin);
    ASSERT_NE(found, segments_.begin()) << "memory is of no segment";
    --found;
    EXPECT_LE(range.end, found->first + found->second) << "memory is of no segment";
  }

  std::size_t limit_, bytes_ = 0;
  std::uintptr_t next_address_ = std::uintptr_t{1} << 32, last_event_ = 0;
  std::map<std::uintptr_t, std::size_t> segments_;
  std::map<std::uintptr_t, Mark> events_;
  Queue queues_[streams];
};

}  // namespace mock
