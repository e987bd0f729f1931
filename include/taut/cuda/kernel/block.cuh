#pragma once
// Reductions over the threads of a warp and of a block. The order in which they combine values depends on
// nothing but the number of threads, so results are the same bits in every run. All lanes of a warp, or all
// threads of a block, must call them together; blocks are of whole warps.

#include <cmath>

#include "launch.cuh"

namespace taut::cuda {

inline constexpr int warp_size = 32;
inline constexpr unsigned all_lanes = 0xFFFFFFFFu;

// What reductions combine by: a functor, with the value that changes nothing as `start`.

struct Sum {
  static constexpr float start = 0;
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};

/// The larger of two values; NaN if either is NaN.
struct Largest {
  static constexpr float start = -INFINITY;
  template <class T> __device__ T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};

/// The smaller of two values; NaN if either is NaN.
struct Smallest {
  static constexpr float start = INFINITY;
  template <class T> __device__ T operator()(T a, T b) const { return a < b || a != a ? a : b; }
};

/// Combines the lanes of a warp, or of each group of `width` neighbours (a power of two); every lane gets the
/// result.
template <class T, class Combine>
__device__ T warp_reduce(T value, const Combine& combine, int width = warp_size) {
  for (int distance = width / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(all_lanes, value, distance));
  return value;
}

/// Combines the threads of a block of one dimension; every thread gets the result. It may be called again at
/// once: the threads have left the shared memory when it returns.
template <class T, class Combine> static __device__ T block_reduce(T value, const Combine& combine) {
  __shared__ T of_warps[warp_size];
  const int lane = static_cast<int>(threadIdx.x) % warp_size,
            warp = static_cast<int>(threadIdx.x) / warp_size;
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  value = warp_reduce(value, combine);
  if (warps == 1) return value;
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  // Each warp combines the warps' results on its own, in the same order.
  value = warp_reduce(lane < warps ? of_warps[lane] : T(Combine::start), combine);
  __syncthreads();
  return value;
}

}  // namespace taut::cuda
