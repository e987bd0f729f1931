// How the threads of a kernel take turns. A block is run to its end before the next begins, and a warp as far
// as it comes without the others before the next is resumed, so that it meets them at their most different
// points; in shuffled order it stops at random points, too. Once no thread can go on, either all wait at one
// barrier, which then opens, or the kernel is wrong.

#include "emulator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fiber.hpp"

#if !TAUT_ADDRESS_SANITIZER
// The linker's names of the bounds of all `__shared__` variables; null if there are none.
extern "C" __attribute__((weak)) std::byte __start_taut_shared[], __stop_taut_shared[];
#endif

namespace emulator {
namespace {

constexpr std::byte poison{0xFF};  // of floats, this makes NaN

enum class State { fresh, ready, at_barrier, in_exchange, ended };

/// A thread of the block that runs.
struct Thread {
  State state = State::fresh;
  uint3 index{};
  Fiber* fiber = nullptr;
  std::source_location where;  ///< of the barrier or exchange at which it waits
  unsigned mask = 0;           ///< the lanes that it waits for
};

/// The exchanges of the lanes that one mask names. The first lanes may come to the next exchange before the
/// last have read their values, but not to the one after that: hence two places, used in turn.
struct Meeting {
  unsigned mask = 0, arrived = 0, turn = 0;
  std::source_location where = {};
  Exchanged values[2] = {};
};

/// The meetings of a warp, one for each mask that was used; references to them stay valid.
using Warp = std::deque<Meeting>;

Order order_from_environment() {
  const char* const value = std::getenv("TAUT_EMULATOR_ORDER");
  const std::string_view name = value ? value : "forward";
  if (name == "forward") return Order::forward;
  if (name == "reverse") return Order::reverse;
  if (name == "shuffled") return Order::shuffled;
  std::fprintf(stderr, "emulator: TAUT_EMULATOR_ORDER must be forward, reverse or shuffled\n");
  std::exit(1);
}

Late late_from_environment() {
  const char* const value = std::getenv("TAUT_EMULATOR_LATE");
  const std::string_view name = value ? value : "none";
  if (name == "none") return Late::none;
  if (name == "first") return Late::first;
  if (name == "others") return Late::others;
  std::fprintf(stderr, "emulator: TAUT_EMULATOR_LATE must be none, first or others\n");
  std::exit(1);
}

Order current_order = order_from_environment();
Late current_late = late_from_environment();
std::mt19937 shuffling;  // the same numbers in every run

/// 0 … count - 1 in the current order.
void arrange(std::vector<unsigned>& positions, std::size_t count) {
  positions.resize(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = static_cast<unsigned>(i);
  if (current_order == Order::reverse) std::reverse(positions.begin(), positions.end());
  if (current_order == Order::shuffled) std::shuffle(positions.begin(), positions.end(), shuffling);
}

std::string text(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
}

std::string text(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

std::string hex(unsigned mask) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "0x%08X", mask);
  return digits;
}

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "emulator: block %s: %s\n", text(blockIdx).c_str(), message.c_str());
  std::abort();
}

/// The block that runs, and the fibers of all.
class Block {
 public:
  std::unique_ptr<std::byte[]> dynamic_shared;

  void configure(const dim3& size, std::size_t shared_bytes, const std::function<void()>& body) {
    threads_.assign(std::size_t{size.x} * size.y * size.z, {});
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const auto position = static_cast<unsigned>(i);
      threads_[i].index = {position % size.x, position / size.x % size.y, position / size.x / size.y};
    }
    warps_.assign((threads_.size() + 31) / 32, {});
    dynamic_shared.reset(new std::byte[shared_bytes]);
    shared_bytes_ = shared_bytes;
    body_ = &body;
  }

  void run() {
    begin();
    while (ended_ < threads_.size()) {
      bool progress = false;
      for (std::size_t first = 0, end = 0; first < order_.size(); first = end) {
        while (end < order_.size() && order_[end] / 32 == order_[first] / 32) ++end;
        bool resumed = false;
        do {
          resumed = resume_warp(first, end);
          progress = progress || resumed;
        } while (resumed && runs_ahead());
      }
      if (!progress) open_barrier();
    }
  }

  unsigned lane() const { return running_ % 32; }
  const Thread& running() const { return threads_[running_]; }

  void wait_at_barrier(const std::source_location& where) { suspend(State::at_barrier, where, 0); }

  const Exchanged& exchange(unsigned mask, const void* value, std::size_t bytes,
                            const std::source_location& where) {
    Meeting& meeting = meeting_of(mask, where);
    Exchanged& values = meeting.values[meeting.turn];
    if (bytes > 0) std::memcpy(values.of_lane[lane()], value, bytes);
    meeting.arrived |= 1u << lane();
    if (meeting.arrived != mask) {
      suspend(State::in_exchange, where, mask);
      return values;
    }
    meeting.arrived = 0;
    meeting.turn ^= 1;
    const std::size_t first = running_ - lane();
    for (unsigned i = 0; i < 32; ++i) {
      if ((mask >> i & 1) == 0 || i == lane()) continue;
      threads_[first + i].state = State::ready;
    }
    return values;
  }

 private:
  void begin() {
    for (Thread& thread : threads_) thread.state = State::fresh;
    for (Warp& warp : warps_)
      for (Meeting& meeting : warp) meeting.arrived = 0;
    ended_ = next_ = 0;
    arrange_threads();
    std::fill_n(dynamic_shared.get(), shared_bytes_, poison);
#if !TAUT_ADDRESS_SANITIZER
    if (__start_taut_shared) std::fill(__start_taut_shared, __stop_taut_shared, poison);
#endif
  }

  /// The threads in the current order, those of a warp together.
  void arrange_threads() {
    std::vector<unsigned> warps, lanes;
    arrange(warps, warps_.size());
    order_.clear();
    for (const unsigned warp : warps) {
      arrange(lanes, std::min<std::size_t>(32, threads_.size() - 32 * warp));
      for (const unsigned lane : lanes) order_.push_back(32 * warp + lane);
    }
  }

  /// Resumes the threads at some places of the order that can go on; false if there are none.
  bool resume_warp(std::size_t first, std::size_t end) {
    bool progress = false;
    for (std::size_t at = first; at < end; ++at) {
      const State state = threads_[order_[at]].state;
      if (state != State::fresh && state != State::ready) continue;
      resume(order_[at]);
      progress = true;
    }
    return progress;
  }

  /// Whether the warp that has been resumed goes on before the others.
  static bool runs_ahead() { return current_order != Order::shuffled || shuffling() % 2 == 0; }

  /// Runs a thread on until it waits, on a fiber of its own from its first wait on.
  void resume(unsigned i) {
    if (threads_[i].state == State::fresh) {
      if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>(&Block::run_fiber));
        idle_.push_back(fibers_.back().get());
      }
      threads_[i].fiber = idle_.back();
      idle_.pop_back();
    }
    enter(i);
    threads_[i].fiber->resume();
  }

  void enter(unsigned i) {
    running_ = i;
    threads_[i].state = State::ready;
    threadIdx = threads_[i].index;
  }

  void suspend(State state, const std::source_location& where, unsigned mask) {
    Thread& thread = threads_[running_];
    thread.state = state;
    thread.where = where;
    thread.mask = mask;
    thread.fiber->suspend();
  }

  static void run_fiber();

  /// Runs the thread that was entered. While threads end without having waited, their fiber takes the next
  /// one: kernels without barriers never switch stacks.
  void run_threads() {
    Fiber* const fiber = threads_[running_].fiber;
    for (;;) {
      (*body_)();
      threads_[running_].state = State::ended;
      ++ended_;
      while (next_ < order_.size() && threads_[order_[next_]].state != State::fresh) ++next_;
      if (next_ == order_.size()) break;
      threads_[order_[next_]].fiber = fiber;
      enter(order_[next_]);
    }
    idle_.push_back(fiber);
    fiber->suspend();
  }

  Meeting& meeting_of(unsigned mask, const std::source_location& where) {
    const std::size_t first = running_ - lane(), lanes = std::min<std::size_t>(32, threads_.size() - first);
    if ((mask >> lane() & 1) == 0) fail("the mask does not name the lane itself", where);
    if (lanes < 32 && mask >> lanes != 0) fail("the mask names lanes that the block does not have", where);
    Warp& warp = warps_[running_ / 32];
    auto found = std::find_if(warp.begin(), warp.end(), [&](const Meeting& m) { return m.mask == mask; });
    if (found == warp.end()) found = warp.insert(warp.end(), Meeting{.mask = mask});
    if (found->arrived == 0) found->where = where;
    if (differ(found->where, where))
      fail(("lanes of one mask are at different places, others at " + text(found->where)).c_str(), where);
    return *found;
  }

  static bool differ(const std::source_location& a, const std::source_location& b) {
    return a.line() != b.line() || std::string_view(a.file_name()) != b.file_name();
  }

  /// Called when no thread can go on: all may do so if all wait at the same barrier.
  void open_barrier() {
    const auto first = std::find_if(threads_.begin(), threads_.end(),
                                    [](const Thread& t) { return t.state == State::at_barrier; });
    for (const Thread& thread : threads_)
      if (thread.state == State::in_exchange) die_of_exchange(thread);
    for (const Thread& thread : threads_) {
      if (thread.state == State::ended)
        die("__syncthreads at " + text(first->where) + " is reached by a part of the block only: thread " +
            text(thread.index) + " has ended");
      if (differ(thread.where, first->where))
        die("threads wait in __syncthreads at different places: " + text(first->index) + " at " +
            text(first->where) + ", " + text(thread.index) + " at " + text(thread.where));
    }
    for (Thread& thread : threads_) thread.state = State::ready;
  }

  /// Says which lane another waits for in vain.
  [[noreturn]] void die_of_exchange(const Thread& waiting) const {
    const auto own = static_cast<std::size_t>(&waiting - threads_.data());
    const std::string subject = "thread " + text(waiting.index) + " waits at " + text(waiting.where) +
                                " for the lanes " + hex(waiting.mask) + ", ";
    for (std::size_t i = 0; i < 32; ++i) {
      if ((waiting.mask >> i & 1) == 0) continue;
      const Thread& other = threads_[own - own % 32 + i];
      if (other.state == State::ended) die(subject + "of which lane " + std::to_string(i) + " has ended");
      if (other.state == State::at_barrier)
        die(subject + "of which lane " + std::to_string(i) + " waits in __syncthreads at " +
            text(other.where));
      if (other.mask != waiting.mask)
        die(subject + "of which lane " + std::to_string(i) + " waits at " + text(other.where) +
            " for other lanes, " + hex(other.mask));
    }
    die(subject + "which never come");
  }

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  const std::function<void()>* body_ = nullptr;
  std::size_t ended_ = 0, next_ = 0, shared_bytes_ = 0;
  unsigned running_ = 0;
};

Block& block() {
  static Block only;
  return only;
}

void Block::run_fiber() {
  for (;;) block().run_threads();
}

/// The limits of all devices, but for the clusters and opt-ins of some.
Code check(const dim3& grid, const dim3& size, std::size_t shared_bytes) {
  const bool grid_fits = grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= 0x7FFFFFFFu &&
                         grid.y <= 65535 && grid.z <= 65535;
  const bool block_fits = size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= 1024 && size.y <= 1024 &&
                          size.z <= 64 && size.x * size.y * size.z <= 1024;
  if (!grid_fits || !block_fits) return invalid_configuration;
  return shared_bytes <= 48 * 1024 ? success : invalid_value;
}

void run_grid(dim3 grid, dim3 size, std::size_t shared_bytes, const Work& thread) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  gridDim = grid;
  blockDim = size;
  block().configure(size, shared_bytes, thread);
  std::vector<unsigned> blocks;
  arrange(blocks, std::size_t{grid.x} * grid.y * grid.z);
  for (const unsigned i : blocks) {
    blockIdx = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
    block().run();
  }
}

/// What was put into a stream and has not run, because the stream is late or being captured.
struct Stream {
  bool first = false, capturing = false;
  std::deque<Work> queue;
  std::size_t done = 0;  ///< how much has left the queue and run
  std::vector<Work> captured;

  bool late() const { return current_late == (first ? Late::first : Late::others); }
};

class Streams {
 public:
  static Streams& instance() {
    static Streams only;
    return only;
  }

  /// f(the stream), while no other thread has it.
  template <class F> auto with(const void* stream, const F& f) {
    const std::lock_guard lock(mutex_);
    const auto [found, added] = streams_.try_emplace(stream);
    if (!first_) first_ = stream;
    if (added) found->second.first = stream == first_;
    return f(found->second);
  }

  /// Runs what is in a stream up to a position, one work at a time of all streams; a work may wait for
  /// others.
  void run(const void* stream, std::size_t position) {
    const std::lock_guard lock(running_);
    while (const Work work =
               with(stream, [&](Stream& s) { return s.done < position ? s.queue.front() : Work(); })) {
      work();
      with(stream, [](Stream& s) { s.queue.pop_front(), ++s.done; });
    }
  }

 private:
  std::mutex mutex_;
  std::recursive_mutex running_;
  std::map<const void*, Stream> streams_;
  const void* first_ = nullptr;
};

}  // namespace

void set_order(Order order) { current_order = order; }
Order order() { return current_order; }

void submit(const void* stream, Work work) {
  const bool now = Streams::instance().with(stream, [&](Stream& s) {
    if (s.capturing)
      s.captured.push_back(std::move(work));
    else if (s.late())
      s.queue.push_back(std::move(work));
    else
      return true;
    return false;
  });
  if (now) work();
}

void set_late(Late late) { current_late = late; }
bool any_late() { return current_late != Late::none; }

Mark mark(const void* stream) {
  return Streams::instance().with(stream, [&](Stream& s) { return Mark{stream, s.done + s.queue.size()}; });
}
bool has_passed(const Mark& mark) {
  return Streams::instance().with(mark.stream, [&](Stream& s) { return s.done >= mark.position; });
}
void run_until(const Mark& mark) { Streams::instance().run(mark.stream, mark.position); }

void begin_capture(const void* stream) {
  Streams::instance().with(stream, [](Stream& s) { s.capturing = true; });
}
std::vector<Work> end_capture(const void* stream) {
  return Streams::instance().with(stream, [](Stream& s) {
    s.capturing = false;
    return std::exchange(s.captured, {});
  });
}
bool is_capturing(const void* stream) {
  return Streams::instance().with(stream, [](Stream& s) { return s.capturing; });
}

Code launch(dim3 grid, dim3 size, std::size_t shared_bytes, const void* stream, Work thread) {
  const Code code = check(grid, size, shared_bytes);
  if (code == success) submit(stream, [=] { run_grid(grid, size, shared_bytes, thread); });
  return code;
}

void* dynamic_shared() { return block().dynamic_shared.get(); }

void block_barrier(const std::source_location& where) { block().wait_at_barrier(where); }

const Exchanged& exchange(unsigned mask, const void* value, std::size_t bytes,
                          const std::source_location& where) {
  return block().exchange(mask, value, bytes, where);
}

unsigned lane() { return block().lane(); }

void fail(const char* message, const std::source_location& where) {
  die("thread " + text(block().running().index) + " at " + text(where) + ": " + message);
}

}  // namespace emulator
