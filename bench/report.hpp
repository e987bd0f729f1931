#pragma once
// What the operators' benchmarks have in common: they are run on one thread and on two, timed by the fastest
// of several rounds, since the median also measures the machine's other guests, and held against the floor
// that their work sets at the peaks of this machine.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>

#include "interleaved.hpp"
#include "peaks.hpp"

namespace bench {

/// What a call has to do at least: floating-point operations, and bytes of operands and of results. An
/// operand counts once for each pass over it that the operator cannot do without.
struct Work {
  double flops = 0, read = 0, written = 0;
  double footprint = 0;   ///< the bytes of all arrays, where some are passed over more than once
  bool in_place = false;  ///< results take the place of operands

  double bytes() const { return read + written; }

  /// The stream that comes closest.
  Stream stream() const {
    return 8 * written < read ? Stream::read : in_place ? Stream::update : Stream::triad;
  }
};

/// The work of an operator that reads some elements and writes some, all in float.
inline Work moving(double elements_read, double elements_written) {
  return {.read = 4 * elements_read, .written = 4 * elements_written};
}

/// The seconds that `work` takes at least on `threads` threads: by the peak of multiply-adds, or by the
/// bandwidth for a footprint like its own, of the triad, or of reading where little is written.
inline double floor_seconds(const Work& work, int threads) {
  const double footprint = work.footprint > 0 ? work.footprint : work.bytes();
  double seconds = work.flops > 0 ? work.flops / fma_peak(threads) : 0;
  if (work.bytes() > 0)
    seconds = std::max(seconds, work.bytes() / bandwidth(threads, work.stream(), footprint));
  return seconds;
}

/// Sets the columns of a call that took some seconds: `GFLOP/s` where operations were counted, else `GB/s`;
/// `limit`, what that would be at the floor; `of_peak`, the floor's share of the time. A label says where the
/// peaks cannot be right, because other programs kept threads waiting for each other.
inline void report(benchmark::State& state, const Work& work, double seconds) {
  const double least = floor_seconds(work, taut::threads());
  const double amount = 1e-9 * (work.flops > 0 ? work.flops : work.bytes());
  state.counters[work.flops > 0 ? "GFLOP/s" : "GB/s"] = amount / seconds;
  state.counters["limit"] = amount / least;
  state.counters["of_peak"] = least / seconds;
  if (least > floor_seconds(work, 1))
    state.SetLabel("the machine is busy: the limit is less than that of one thread");
}

/// The seconds a call takes in the fastest of several rounds, after one to warm up.
inline double fastest_call(const std::function<void()>& call) {
  call();
  const double estimate = std::max(seconds_per_call(call, 1), 1e-9);
  const int calls = static_cast<int>(std::clamp(2e-3 / estimate, 1.0, 1e5));
  const int rounds = static_cast<int>(std::clamp(0.1 / (estimate * calls), 5.0, 50.0));
  double best = estimate;
  for (int round = 0; round < rounds; ++round) best = std::min(best, seconds_per_call(call, calls));
  return best;
}

/// Times a call and sets its columns.
inline void measure(benchmark::State& state, const Work& work, const std::function<void()>& call) {
  double seconds = 0;
  for (auto _ : state) state.SetIterationTime(seconds = fastest_call(call));
  report(state, work, seconds);
}

/// Registers `body(state)` under a name, on one thread and on two, as far as the machine has them.
inline void add(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  static const int most = taut::threads();
  for (int threads = 1; threads <= std::min(most, 2); ++threads)
    benchmark::RegisterBenchmark((name + "/threads:" + std::to_string(threads)).c_str(),
                                 [body, threads](benchmark::State& state) {
                                   taut::set_threads(threads);
                                   taut::cpu::apply_threads();
                                   body(state);
                                 })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
}

/// Marks a benchmark as failed unless what it computed is right.
inline void check(benchmark::State& state, bool right, const char* message) {
  if (!right) state.SkipWithError(message);
}

/// Whether values are finite and not all equal: what is left of random operands.
inline bool varied(std::span<const float> values) {
  const bool finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  return finite && std::ranges::any_of(values, [&](float value) { return value != values[0]; });
}

/// Whether two numbers agree to `tolerance`, absolute or relative.
inline bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

}  // namespace bench
