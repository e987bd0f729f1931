#pragma once
// Matrix products of the CPU backend.

#include <atomic>
#include <cstdint>

#include "parallel.hpp"

#ifndef TAUT_HAS_ONEDNN
#define TAUT_HAS_ONEDNN 0
#endif

namespace taut::cpu {

/// One product, or a batch of them: C = op(A) op(B), where op transposes if asked to. A is [m, k] in memory,
/// or [k, m] with `transpose_a`; B is [k, n], or [n, k] with `transpose_b`; C is [m, n]. All are dense and
/// row-major.
struct Gemm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  /// Elements between the items of a batch; 0 where the whole batch shares the operand.
  std::int64_t stride_a = 0, stride_b = 0;
};

/// C = op(A) op(B) + bias, by loops that need no library.
template <class E> void gemm_portable(const Gemm& g, const E* a, const E* b, const E* bias, E* c) {
  const std::int64_t a_row = g.transpose_a ? 1 : g.k, a_col = g.transpose_a ? g.m : 1;
  const std::int64_t b_row = g.transpose_b ? 1 : g.n, b_col = g.transpose_b ? g.k : 1;
  parallel_for(g.batch * g.m, 1 + (1 << 16) / (1 + g.n * g.k), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const E* const x = a + r / g.m * g.stride_a + r % g.m * a_row;
      const E* const y = b + r / g.m * g.stride_b;
      E* const z = c + r * g.n;
      for (std::int64_t j = 0; j < g.n; ++j) z[j] = bias ? bias[j] : E(0);
      for (std::int64_t p = 0; p < g.k; ++p)
        for (std::int64_t j = 0; j < g.n; ++j) z[j] += x[p * a_col] * y[p * b_row + j * b_col];
    }
  });
}

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
