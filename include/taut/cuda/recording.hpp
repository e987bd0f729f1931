#pragma once
// Steps of a program that the device does again by itself: what captured steps (graph.hpp) are made of, and
// how operators take part in it whose arguments change from step to step.

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/random.hpp"
#include "argument.hpp"
#include "buffer.hpp"
#include "graph_memory.hpp"
#include "ongoing_capture.hpp"

namespace taut::cuda {

/// Work that is captured from the current stream from the construction of this object on, not run, until
/// `finish`; with the memory that it runs in, and those arguments that each replay takes anew.
class Recording final : public OngoingCapture {
 public:
  /// Random numbers that the step draws from the given generators are other ones at each replay; they must
  /// outlive this object. Throws `Error` if the stream is being captured already.
  explicit Recording(const std::vector<Rng*>& generators)
      : OngoingCapture(current_stream()),
        values_(Buffer::allocate(most_bytes)),
        memory_(pool(), stream()),
        capturing_(true) {
    for (Rng* rng : generators) generators_.push_back({rng, rng->state()});
    begin_capture(stream());
    current = this;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// If the capture is still going on, since the step has thrown, what was captured is run: the host counts
  /// it as done.
  ~Recording() {
    try {
      finish();
    } catch (const Error&) {
      // The step's own exception says more.
    }
    if (graph_) destroy_graph(graph_);
  }

  /// Ends the capture, unless it was interrupted, and runs what was captured. Throws `DeviceError` if the
  /// step has done what a device can't capture and Taut does not know of.
  void finish() {
    if (!capturing_) return;
    for (Generator& generator : generators_) generator.count_draws();
    run_captured();
  }

  void interrupt(const char* why) override {
    reason_ = why;
    run_captured();
  }

  /// Why the step cannot be replayed as a whole; empty if it can.
  const std::string& reason() const { return reason_; }

  /// How many updates of parameters by a rule were captured.
  std::size_t updates() const { return updates_; }

  /// The memory that the work runs in.
  const GraphMemory& memory() const { return memory_; }

  /// Runs all of it once more, with the rules as they are now and the generators' next numbers.
  void replay() {
    for (Generator& generator : generators_) generator.draw();
    for (const Place& place : places_) place.write(bytes_.data() + place.offset);
    run();
  }

  /// The recording that is going on in the calling thread's current stream, or null.
  static Recording* ongoing() {
    return current && current->stream() == current_stream() ? static_cast<Recording*>(current) : nullptr;
  }

  /// A place that has `value` now, and what `at_replay` gives at each replay. Null, and the capture ends, if
  /// there is no room.
  template <class X> const X* place(const X& value, std::function<X()> at_replay) {
    static_assert(std::is_trivially_copyable_v<X> && alignof(X) <= 16,
                  "what changes from replay to replay must be plain data");
    const std::size_t offset = (bytes_.size() + 15) / 16 * 16;
    if (offset + sizeof(X) > most_bytes) {
      interrupt("has too many arguments that change from step to step");
      return nullptr;
    }
    bytes_.resize(offset + sizeof(X));
    std::memcpy(bytes_.data() + offset, &value, sizeof(X));
    places_.push_back({offset, [get = std::move(at_replay)](std::byte* to) {
                         const X now = get();
                         std::memcpy(to, &now, sizeof(X));
                       }});
    return reinterpret_cast<const X*>(values_.data(stream()) + offset);
  }

  /// The place of a rule that stays where it is.
  template <class Rule> const Rule* place_of_rule(const Rule& rule) {
    ++updates_;
    return place<Rule>(rule, [&rule] { return rule; });
  }

  /// The place of random numbers; null, and the capture ends, if they are of none of the generators.
  const RandomStream* place_of_numbers(const RandomStream& numbers) {
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      const RandomStream &begin = generators_[i].begin, &end = generators_[i].rng->state();
      if (numbers.key != begin.key || numbers.stream != begin.stream ||
          numbers.first_block < begin.first_block || numbers.first_block >= end.first_block)
        continue;
      const std::uint64_t offset = numbers.first_block - begin.first_block;
      return place<RandomStream>(numbers, [this, i, offset] {
        RandomStream now = generators_[i].begin;
        now.first_block += offset;
        return now;
      });
    }
    interrupt("draws random numbers from a generator that `capture` was not given");
    return nullptr;
  }

 private:
  /// What all arguments of a step may take that change: some for each dropout, one for each optimizer.
  static constexpr std::size_t most_bytes = std::size_t{64} << 10;

  /// A generator, where it stood before the step, and how far that moves it.
  struct Generator {
    Rng* rng;
    RandomStream begin;
    std::uint64_t drawn = 0;

    void count_draws() { drawn = rng->state().first_block - begin.first_block; }
    void draw() {
      begin = rng->state();
      RandomStream after = begin;
      after.first_block += drawn;
      *rng = Rng(after);
    }
  };

  struct Place {
    std::size_t offset;
    std::function<void(std::byte*)> write;
  };

  void run_captured() {
    capturing_ = false;
    current = nullptr;
    try {
      graph_ = end_capture(stream());
    } catch (...) {
      memory_.end_capture();
      throw;
    }
    memory_.end_capture();
    run();
  }

  void run() {
    upload(values_.data(stream()), bytes_.data(), bytes_.size(), stream());
    cuda::replay(graph_, stream());
  }

  std::vector<Generator> generators_;
  std::vector<Place> places_;
  std::vector<std::byte> bytes_;  ///< of all places, as the next run takes them
  Buffer values_;                 ///< the places
  GraphMemory memory_;
  Graph graph_ = nullptr;
  bool capturing_;
  std::size_t updates_ = 0;
  std::string reason_;
};

/// The argument of a kernel that is an update rule: one that is captured is read again at each replay, and so
/// must stay where it is.
template <class Rule> Argument<Rule> at_replay(const Rule& rule) {
  Recording* const recording = Recording::ongoing();
  return {rule, recording ? recording->place_of_rule(rule) : nullptr};
}

/// The argument of a kernel that is a sequence of random numbers: replays take the next ones.
inline Argument<RandomStream> at_replay(const RandomStream& numbers) {
  Recording* const recording = Recording::ongoing();
  return {numbers, recording ? recording->place_of_numbers(numbers) : nullptr};
}

}  // namespace taut::cuda
