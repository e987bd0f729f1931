#pragma once
// Choosing the fastest of several ways to compute the same thing by running each of them.

#include <cstddef>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "taut/cuda/device.hpp"

namespace taut::cuda {

/// Whether work can be run for its time: not while the stream is being captured.
bool can_time(Stream stream);

/// The index of the fastest of `count` candidates, of which there is one at least. run(i) puts the work of
/// one into the stream, which must have the same effect each time, and may throw a `DeviceError` to be left
/// out; if all of them do, the last error is thrown. The host waits for the work.
template <class Run> std::size_t fastest(std::size_t count, Stream stream, const Run& run) {
  constexpr int repetitions = 3;
  const Event begin = create_event(true), end = create_event(true);
  std::size_t best = count;
  float best_time = std::numeric_limits<float>::infinity();
  std::exception_ptr failure;
  for (std::size_t i = 0; i < count; ++i) {
    try {
      run(i);  // loads what it needs
      record(begin, stream);
      for (int repetition = 0; repetition < repetitions; ++repetition) run(i);
      record(end, stream);
      synchronize(end);
      const float time = elapsed_milliseconds(begin, end);
      if (time < best_time) best = i, best_time = time;
    } catch (const DeviceError&) {
      failure = std::current_exception();
    }
  }
  destroy_event(begin);
  destroy_event(end);
  if (best == count) std::rethrow_exception(failure);
  return best;
}

/// Keeps nothing but the fastest of several candidates, where run(candidate) does what `fastest` says. If all
/// of them throw they stay, and the last error is thrown.
template <class Candidate, class Run>
void keep_fastest(std::vector<Candidate>& candidates, Stream stream, const Run& run) {
  const auto best = fastest(candidates.size(), stream, [&](std::size_t i) { run(candidates[i]); });
  std::swap(candidates.front(), candidates[best]);
  candidates.erase(candidates.begin() + 1, candidates.end());
}

}  // namespace taut::cuda
