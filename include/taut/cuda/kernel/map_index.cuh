#pragma once
// How kernels that walk over a plan (map_plan.hpp) find the operands' elements.

#include "../map_plan.hpp"
#include "divide.cuh"
#include "vector.cuh"

namespace taut::cuda {

/// How a position among the units of a result, vectors or elements, becomes places in N operands.
template <int N> struct MapIndex {
  int rank = 1;
  Divider extents[max_rank];               // in units along the innermost axis
  std::int64_t strides[max_rank][N] = {};  // in elements

  /// For units of `unit` elements.
  MapIndex(const MapPlan& plan, int unit) : rank(plan.rank) {
    for (int d = 0; d < rank; ++d) {
      const std::int64_t each = d == 0 ? unit : 1;
      const std::int64_t units = (plan.extents[d] + each - 1) / each;
      extents[d] = Divider(static_cast<std::uint32_t>(units > 0 ? units : 1));
      for (int k = 0; k < N; ++k) strides[d][k] = plan.strides[d][k] * each;
    }
  }

  /// The operands' offsets for a position, which must be below 2³¹.
  __device__ void offsets(std::uint32_t position, std::int64_t (&at)[N]) const {
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] = 0;
    for (int d = 0; d < rank; ++d) {
      const std::uint32_t rest = d + 1 < rank ? extents[d].divide(position) : 0;
      const std::uint32_t index = position - rest * extents[d].divisor;
#pragma unroll
      for (int k = 0; k < N; ++k) at[k] += index * strides[d][k];
      position = rest;
    }
  }
};

/// Whether an operand of a plan can be read or written `width` elements at a time, or is repeated along the
/// innermost axis.
template <class E> bool fits_vectors(const MapPlan& plan, int k, int width, const E* at) {
  if (plan.rank > 1 && plan.extents[0] % width != 0) return false;
  if (plan.strides[0][k] == 0) return true;
  bool fits = plan.strides[0][k] == 1 && vector_aligned(at);
  for (int d = 1; d < plan.rank; ++d) fits = fits && plan.strides[d][k] % width == 0;
  return fits;
}

/// Enough blocks of kernels that only move data to occupy the device, for `units` of which a thread takes one
/// at a time.
inline unsigned blocks_to_occupy(std::int64_t units) {
  return blocks_for(units, block_threads, std::int64_t{16} * device_properties().multiprocessors);
}

}  // namespace taut::cuda
