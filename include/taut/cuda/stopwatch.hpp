#pragma once
// The times of operators on the device, for `Profiled<CudaTensor>`: between two events around what an
// operator puts into its stream. Nobody waits for them until the profile is read; then they are booked. Other
// profilers see the operators as NVTX ranges. Within a capture nothing is timed, since nothing runs there.

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "../interpret/trace.hpp"
#include "ongoing_capture.hpp"
#include "tensor.hpp"

namespace taut::cuda::detail {

/// Calls on one device whose times are not booked yet.
class Timings {
 public:
  /// Marks in the current stream that a call begins.
  Event begin() {
    const std::lock_guard lock(mutex_);
    if (anchor_ == nullptr) {
      anchor_ = take();
      record(anchor_, current_stream());
      synchronize(anchor_);
      anchor_time_ = taut::detail::TraceClock::now();
    }
    ++open_;
    return mark();
  }

  /// Marks that it has ended, and keeps it until it is booked.
  void end(const taut::detail::Work& work, Event begin) {
    bool is_full = false;
    {
      const std::lock_guard lock(mutex_);
      --open_;
      const Event end = mark();
      calls_.push_back({taut::detail::OwnedWork(work), begin, end, taut::detail::trace_thread()});
      is_full = calls_.size() >= most;
    }
    if (is_full) book();
  }

  /// Forgets a call that has begun.
  void drop(Event event) {
    const std::lock_guard lock(mutex_);
    --open_;
    free_.push_back(event);
  }

  /// Books all calls, for which it waits.
  void book() {
    const std::lock_guard lock(mutex_);
    const auto calls = std::exchange(calls_, {});
    for (const auto& [work, begin, end, thread] : calls) {
      synchronize(end);
      const auto start = anchor_time_ + since(anchor_, begin);
      taut::detail::book(work, start, start + since(begin, end), 0, thread);
      free_.insert(free_.end(), {begin, end});
    }
    // Another anchor once none refers to this one: differences of times are floats.
    if (anchor_ != nullptr && open_ == 0) free_.push_back(std::exchange(anchor_, nullptr));
  }

 private:
  struct Call {
    taut::detail::OwnedWork work;
    Event begin, end;
    int thread;
  };

  static constexpr std::size_t most = 8192;  ///< calls that wait to be booked

  static taut::detail::TraceClock::duration since(Event begin, Event end) {
    const std::chrono::duration<float, std::milli> time(elapsed_milliseconds(begin, end));
    return std::chrono::duration_cast<taut::detail::TraceClock::duration>(time);
  }

  Event mark() {
    const Event event = take();
    record(event, current_stream());
    return event;
  }

  Event take() {
    if (free_.empty()) return create_event(true);
    const Event event = free_.back();
    free_.pop_back();
    return event;
  }

  std::mutex mutex_;
  std::vector<Call> calls_;
  int open_ = 0;  ///< calls that have begun and not ended
  std::vector<Event> free_;
  Event anchor_ = nullptr;  ///< a mark whose time the host knows
  taut::detail::TraceClock::time_point anchor_time_;
};

/// Those of all devices. They stay until the program ends.
class AllTimings {
 public:
  static Timings& of_current_device() {
    static AllTimings& all = instance();
    const std::lock_guard lock(all.mutex_);
    return all.of_device_[current_device()];
  }

 private:
  static AllTimings& instance() {
    static AllTimings* const all = [] {
      auto& profile = taut::detail::global_profile();
      const std::lock_guard lock(profile.mutex);
      profile.late.push_back([] { instance().book(); });
      return new AllTimings;
    }();
    return *all;
  }

  void book() {
    const std::lock_guard lock(mutex_);
    for (auto& [device, timings] : of_device_) timings.book();
  }

  std::mutex mutex_;
  std::map<int, Timings> of_device_;
};

}  // namespace taut::cuda::detail

namespace taut::detail {

template <class E> class Stopwatch<BasicCudaTensor<E>> {
 public:
  explicit Stopwatch(const Work& work) : work_(work) {
    if (!cuda::OngoingCapture::current) {
      timings_ = &cuda::detail::AllTimings::of_current_device();
      begin_ = timings_->begin();
    }
    cuda::push_range(work.name);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    if (begin_ != nullptr) timings_->drop(begin_);
    cuda::pop_range();
  }

  void book() {
    // A capture may have ended, or an operator's own may have begun.
    if (begin_ == nullptr || cuda::OngoingCapture::current) return;
    timings_->end(work_, std::exchange(begin_, nullptr));
  }

 private:
  Work work_;
  cuda::detail::Timings* timings_ = nullptr;
  cuda::Event begin_ = nullptr;
};

}  // namespace taut::detail
