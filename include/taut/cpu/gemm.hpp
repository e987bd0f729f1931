#pragma once
// Matrix products of the CPU backend: which engine computes which product.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "gemm_onednn.hpp"
#include "gemm_portable.hpp"

namespace taut::cpu {

namespace detail {

inline std::atomic<bool> onednn_wanted{TAUT_HAS_ONEDNN != 0};

/// Products of fewer multiplications than this are computed by the portable kernel even where oneDNN is
/// present: with vectors as wide as oneDNN's it is about as fast, a call costs less, it divides the work so
/// that little passes between the cores, and it ends with ReLU. (Measured with AVX-512: 64 x 64 x 128
/// takes 4.9 us on two cores, against 5.7 with oneDNN; 64 x 512 x 256 takes 56 and 59; 256 x 128 x 784 takes
/// 140 and 141; from 2^26 on, oneDNN is up to a quarter faster.)
inline constexpr std::int64_t onednn_products = std::int64_t{1} << (blocked::vector_bytes == 64   ? 25
                                                                    : blocked::vector_bytes == 32 ? 16
                                                                                                  : 13);

}  // namespace detail

/// Whether matrix products of floats may go to oneDNN: it is compiled in and not switched off.
inline bool uses_onednn() { return detail::onednn_wanted.load(std::memory_order_relaxed); }

/// Switches oneDNN on or off for the whole program. No effect in a build without oneDNN.
inline void use_onednn(bool wanted) {
  detail::onednn_wanted.store(wanted && TAUT_HAS_ONEDNN != 0, std::memory_order_relaxed);
}

/// Whether oneDNN computes a product.
template <class E> bool takes_onednn([[maybe_unused]] const Gemm& g) {
#if TAUT_HAS_ONEDNN
  if constexpr (std::is_same_v<E, float>)
    return uses_onednn() && !g.packed_b && g.batch * g.m * g.n * g.k >= detail::onednn_products;
#endif
  return false;
}

/// Whether `gemm` packs an op(B) that is given transposed, so that having done so beforehand saves time.
template <class E> bool packs_columns(const Gemm& g) {
  return g.batch * g.m * g.n * g.k > 0 && !blocked::takes_dots(g) && !takes_onednn<E>(g);
}

/// C = op(A) op(B) + bias for each item of the batch. `bias`, of n elements, is added to every row; it may be
/// null. C, of batch x m x n elements, is overwritten and never read; it must not overlap an operand. Any
/// dimension may be 0: an empty sum is the bias, or 0. NaN and infinity propagate, also through products with
/// 0. Returns whether that took care of the ReLU, if one is wanted.
template <class E> bool gemm(Gemm g, const E* a, const E* b, const E* bias, E* c) {
  if (g.batch > 1 && g.stride_b == 0) {
    const std::int64_t items = g.batch;
    if (g.stride_a == 0) {  // Every item is the same product.
      g.batch = 1;
      const bool ended = gemm(g, a, b, bias, c);
      for (std::int64_t item = 1; item < items; ++item) std::copy_n(c, g.m * g.n, c + item * g.m * g.n);
      return ended;
    }
    if (!g.transpose_a && g.stride_a == g.m * g.k) {  // The items' rows adjoin: they are one tall product.
      g.m *= items;
      g.batch = 1;
    }
  }
  if (g.batch == 1) g.stride_a = g.stride_b = 0;
#if TAUT_HAS_ONEDNN
  if constexpr (std::is_same_v<E, float>)
    if (takes_onednn<E>(g)) {
      const bool relu = std::exchange(g.relu, false);  // oneDNN's makes 0 of NaN
      gemm_onednn(g, a, b, bias, c);
      return !relu;
    }
#endif
  gemm_portable(g, a, b, bias, c);
  return true;
}

}  // namespace taut::cpu
