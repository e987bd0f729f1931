#pragma once
// When everything happened: the events of profiled operators and of spans that users mark, recorded one by
// one while a `TraceRecording` is in scope. io/chrome_trace.hpp writes them to a file for a viewer.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profile.hpp"

namespace taut {

/// Something that took time on a thread. It is valid as long as the recording that it comes from.
struct TraceEvent {
  std::string_view name;
  std::span<const Shape> operands = {};  ///< of an operator
  std::int64_t flops = 0, bytes = 0, conversions = 0;
  bool span = false;          ///< marked by a `TraceSpan`, and no operator
  int thread = 0;             ///< threads are numbered from 1, as they first appear in a trace
  std::int64_t start = 0;     ///< in nanoseconds since the recording began
  std::int64_t duration = 0;  ///< in nanoseconds

  std::int64_t stop() const { return start + duration; }
};

namespace detail {

using TraceClock = std::chrono::steady_clock;

/// Whether a recording is in progress: all that a program without one looks at.
inline std::atomic<bool> tracing{false};

/// A number for the calling thread.
inline int trace_thread() {
  static std::atomic<int> count{0};
  thread_local const int number = 1 + count.fetch_add(1, std::memory_order_relaxed);
  return number;
}

/// The events of a recording, up to a limit. Guarded by the profile's mutex.
class TraceBuffer {
 public:
  explicit TraceBuffer(std::size_t limit) : limit_(limit), begin_(TraceClock::now()) {}

  std::int64_t since_begin(TraceClock::time_point time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - begin_).count();
  }
  std::int64_t now() const { return stopped_ >= 0 ? stopped_ : since_begin(TraceClock::now()); }
  std::size_t limit() const { return limit_; }
  std::int64_t dropped() const { return dropped_; }

  /// Puts an event down, and returns its place. Beyond the limit it is only counted.
  std::size_t add(const TraceEvent& event) {
    if (events_.size() >= limit_) return ++dropped_, limit_;
    events_.push_back(event);
    return events_.size() - 1;
  }

  /// A span takes its place when it begins, so that a full buffer does not lose the outermost ones.
  std::size_t begin_span(std::string_view name) {
    if (events_.size() >= limit_) return add({});
    auto kept = names_.find(name);
    if (kept == names_.end()) kept = names_.emplace(name).first;
    return add({.name = *kept, .span = true, .thread = trace_thread(), .start = now(), .duration = open});
  }
  void end_span(std::size_t place) {
    if (place < limit_) events_[place].duration = now() - events_[place].start;
  }

  /// Ends what is open: nothing is added afterwards.
  void stop() {
    stopped_ = now();
    for (auto& event : events_)
      if (event.duration == open) event.duration = stopped_ - event.start;
  }

  /// In the order in which they began, outer ones first. Spans still open last until now.
  std::vector<TraceEvent> events() const {
    std::vector<TraceEvent> result(events_.begin(), events_.end());
    const auto until = now();
    for (auto& event : result)
      if (event.duration == open) event.duration = until - event.start;
    std::sort(result.begin(), result.end(), [](const TraceEvent& a, const TraceEvent& b) {
      if (a.start != b.start) return a.start < b.start;
      return a.duration != b.duration ? a.duration > b.duration : a.span > b.span;
    });
    return result;
  }

 private:
  static constexpr std::int64_t open = -1;

  std::size_t limit_;
  TraceClock::time_point begin_;
  std::int64_t stopped_ = -1, dropped_ = 0;
  std::deque<TraceEvent> events_;
  std::set<std::string, std::less<>> names_;
};

/// Runs from its construction, with the work that is about to be done, until `book`. A leaf specialises it
/// whose work goes on after an operator has returned.
template <class Leaf> class Stopwatch;

/// Books a call that a thread has made and that has ended, and records it if a recording is in progress.
inline void book(const Work& work, TraceClock::time_point begin, TraceClock::time_point end,
                 std::int64_t conversions, int thread = trace_thread()) {
  auto& profile = global_profile();
  const std::lock_guard lock(profile.mutex);
  auto found = profile.entries.find(work);
  if (found == profile.entries.end()) found = profile.entries.emplace(OwnedWork(work), ProfileEntry{}).first;
  auto& [kept, entry] = *found;
  entry += ProfileEntry{1, std::chrono::duration<double>(end - begin).count(), work.flops, work.bytes,
                        conversions};
  if (!profile.trace) return;
  const auto start = profile.trace->since_begin(begin);
  if (start >= 0)
    profile.trace->add({kept.name, kept.operands, work.flops, work.bytes, conversions, false, thread, start,
                        profile.trace->since_begin(end) - start});
}

}  // namespace detail

/// Records events of all threads from its construction until `stop` or its end: of operators on `Profiled`
/// values, and of `TraceSpan`s. It holds `limit` events at most; what comes later is only counted.
///
/// ```
/// TraceRecording trace;
/// train_one_step();
/// io::write_chrome_trace(trace, "step.json");
/// ```
class TraceRecording {
 public:
  static constexpr std::size_t default_limit = 200'000;

  /// Throws `Error` if another recording is in progress.
  explicit TraceRecording(std::size_t limit = default_limit) : buffer_(limit) {
    detail::book_late();
    auto& profile = detail::global_profile();
    const std::lock_guard lock(profile.mutex);
    if (profile.trace)
      detail::throw_error("TraceRecording", "another recording is in progress; stop it first");
    profile.trace = &buffer_;
    ++profile.recordings;
    detail::tracing.store(true, std::memory_order_relaxed);
  }
  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;
  ~TraceRecording() {
    try {
      detail::book_late();
    } catch (const Error&) {
      // A device has failed: whoever waits for it is told.
    }
    close();
  }

  /// Records nothing more. Spans that are still open end here.
  void stop() {
    detail::book_late();
    close();
  }

  /// The events so far in the order in which they began, outer ones first. They are valid as long as the
  /// recording is there.
  std::vector<TraceEvent> events() const {
    detail::book_late();
    const std::lock_guard lock(detail::global_profile().mutex);
    return buffer_.events();
  }

  /// How many events there was no room for.
  std::int64_t dropped() const {
    detail::book_late();
    const std::lock_guard lock(detail::global_profile().mutex);
    return buffer_.dropped();
  }

  std::size_t limit() const { return buffer_.limit(); }

 private:
  void close() {
    auto& profile = detail::global_profile();
    const std::lock_guard lock(profile.mutex);
    if (profile.trace != &buffer_) return;
    buffer_.stop();
    profile.trace = nullptr;
    detail::tracing.store(false, std::memory_order_relaxed);
  }

  detail::TraceBuffer buffer_;
};

/// Marks a stretch of the program, from its construction to its end, in a trace: `TraceSpan span("forward")`.
/// Does nothing where no recording is in progress.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view name) {
    if (detail::tracing.load(std::memory_order_relaxed)) begin(name);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (recording_ > 0) end();
  }

 private:
  void begin(std::string_view name) {
    auto& profile = detail::global_profile();
    const std::lock_guard lock(profile.mutex);
    if (!profile.trace) return;
    place_ = profile.trace->begin_span(name);
    recording_ = profile.recordings;
  }
  void end() {
    auto& profile = detail::global_profile();
    const std::lock_guard lock(profile.mutex);
    if (profile.trace && profile.recordings == recording_) profile.trace->end_span(place_);
  }

  std::int64_t recording_ = 0;  // its number; 0 if there was none
  std::size_t place_ = 0;
};

}  // namespace taut
