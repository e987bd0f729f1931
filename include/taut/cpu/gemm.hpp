#pragma once
// Matrix products of the CPU backend.

#include <atomic>
#include <cstdint>

#include "gemm_portable.hpp"

#ifndef TAUT_HAS_ONEDNN
#define TAUT_HAS_ONEDNN 0
#endif

namespace taut::cpu {

namespace detail {
inline std::atomic<bool> onednn_wanted{TAUT_HAS_ONEDNN != 0};
}  // namespace detail

/// Whether matrix products of floats go to oneDNN: it is compiled in and not switched off.
inline bool uses_onednn() { return detail::onednn_wanted.load(std::memory_order_relaxed); }

/// Switches oneDNN on or off for the whole program. No effect in a build without oneDNN.
inline void use_onednn(bool wanted) {
  detail::onednn_wanted.store(wanted && TAUT_HAS_ONEDNN != 0, std::memory_order_relaxed);
}

/// C = op(A) op(B) + bias for each item of the batch. `bias`, of n elements, is added to every row, and may
/// be null. C, of batch x m x n elements, is overwritten and never read; it must not overlap an operand.
template <class E> void gemm(const Gemm& g, const E* a, const E* b, const E* bias, E* c) {
  gemm_portable(g, a, b, bias, c);
}

}  // namespace taut::cpu
