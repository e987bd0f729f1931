#pragma once
// Matrix products of the CPU backend: which engine computes which product.

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "gemm_onednn.hpp"
#include "gemm_portable.hpp"

namespace taut::cpu {

namespace detail {
inline std::atomic<bool> onednn_wanted{TAUT_HAS_ONEDNN != 0};
}  // namespace detail

/// Whether matrix products of floats may go to oneDNN: it is compiled in and not switched off.
inline bool uses_onednn() { return detail::onednn_wanted.load(std::memory_order_relaxed); }

/// Switches oneDNN on or off for the whole program. No effect in a build without oneDNN.
inline void use_onednn(bool wanted) {
  detail::onednn_wanted.store(wanted && TAUT_HAS_ONEDNN != 0, std::memory_order_relaxed);
}

namespace detail {

/// The same product with as small a batch as possible: a batch of row blocks of A that shares B is one
/// product.
inline Gemm fold_batch(Gemm g) {
  const bool rows_adjoin = !g.transpose_a && g.stride_a == g.m * g.k;
  if (g.batch > 1 && g.stride_b == 0 && rows_adjoin) g.m *= std::exchange(g.batch, 1);
  if (g.batch == 1) g.stride_a = g.stride_b = 0;
  return g;
}

}  // namespace detail

/// C = op(A) op(B) + bias for each item of the batch. `bias`, of n elements, is added to every row, and may
/// be null. C, of batch x m x n elements, is overwritten and never read; it must not overlap an operand. Any
/// dimension may be 0: an empty sum is the bias, or 0. NaN and infinity propagate, also through products with
/// 0.
template <class E> void gemm(const Gemm& g, const E* a, const E* b, const E* bias, E* c) {
  const Gemm folded = detail::fold_batch(g);
#if TAUT_HAS_ONEDNN
  if constexpr (std::is_same_v<E, float>)
    if (uses_onednn() && g.batch > 0 && g.m > 0 && g.n > 0 && g.k > 0)
      return gemm_onednn(folded, a, b, bias, c);
#endif
  gemm_portable(folded, a, b, bias, c);
}

}  // namespace taut::cpu
