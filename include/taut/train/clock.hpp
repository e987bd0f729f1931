#pragma once

#include <chrono>

namespace taut::train::detail {

/// The time in seconds of a clock that never goes back, from any origin.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace taut::train::detail
