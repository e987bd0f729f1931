#pragma once
// How precisely products and convolutions of floats are computed.

#include <atomic>

namespace taut::cuda {

namespace detail {
inline std::atomic<bool> tf32{false};
}  // namespace detail

/// Whether products and convolutions of floats may round their operands to TF32, which has the 10 fraction
/// bits of a half-precision number, and then run on tensor cores. Sums stay floats. Off unless switched on,
/// for the whole program.
inline void allow_tf32(bool allowed) { detail::tf32.store(allowed, std::memory_order_relaxed); }
inline bool tf32_allowed() { return detail::tf32.load(std::memory_order_relaxed); }

}  // namespace taut::cuda
