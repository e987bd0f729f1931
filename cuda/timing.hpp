#pragma once
// Choosing the fastest of several ways to compute the same thing by running each of them.

#include <cstddef>
#include <limits>

#include "taut/cuda/device.hpp"

namespace taut::cuda {

/// Whether work can be run for its time: not while the stream is being captured.
bool can_time(Stream stream);

/// The index of the fastest of `count` candidates. run(i) puts the work of one into the stream, which must
/// have the same effect each time, and may throw a `DeviceError` to be left out; 0 if all of them do. The
/// host waits for the work.
template <class Run> std::size_t fastest(std::size_t count, Stream stream, const Run& run) {
  constexpr int repetitions = 3;
  const Event begin = create_event(true), end = create_event(true);
  std::size_t best = 0;
  float best_time = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    try {
      run(i);  // loads what it needs
      record(begin, stream);
      for (int repetition = 0; repetition < repetitions; ++repetition) run(i);
      record(end, stream);
      synchronize(end);
    } catch (const DeviceError&) {
      continue;
    }
    const float time = elapsed_milliseconds(begin, end);
    if (time < best_time) best = i, best_time = time;
  }
  destroy_event(begin);
  destroy_event(end);
  return best;
}

}  // namespace taut::cuda
