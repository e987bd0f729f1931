#pragma once
// Access to memory 16 bytes at a time, which takes the fewest instructions for the bandwidth: 4 floats or 8
// bfloat16 a thread. Tails, and arrays whose start is not aligned, go element by element by the same code.

#include <taut/core/bfloat16.hpp>

#include "launch.cuh"

namespace taut::cuda {

/// How many elements 16 bytes hold.
template <class E> inline constexpr int vector_size = 16 / static_cast<int>(sizeof(E));

/// `width` elements, which are loaded and stored at once: as many as 16 bytes hold, or fewer.
template <class E, int width = vector_size<E>> struct alignas(width * sizeof(E)) Vector {
  E items[width];

  __host__ __device__ E& operator[](int i) { return items[i]; }
  __host__ __device__ const E& operator[](int i) const { return items[i]; }
};

/// Whether all of the arrays start at a multiple of 16 bytes.
template <class... E> __host__ __device__ bool vector_aligned(const E*... arrays) {
  return ((reinterpret_cast<std::uintptr_t>(arrays) | ...) & 15) == 0;
}

/// The elements from[0 … width - 1]; `from` must be aligned to the vector's size.
template <class E, int width = vector_size<E>> __device__ Vector<E, width> load_vector(const E* from) {
  return *reinterpret_cast<const Vector<E, width>*>(from);
}

/// Writes a vector to to[0 … width - 1]; `to` must be aligned to the vector's size.
template <class E, int width> __device__ void store_vector(E* to, const Vector<E, width>& vector) {
  *reinterpret_cast<Vector<E, width>*>(to) = vector;
}

/// The first elements of an array of `left` elements, at most a vector of them; the places beyond hold
/// `fill`. `aligned`: whether `from` is aligned to the vector's size.
template <class E, int width = vector_size<E>>
__device__ Vector<E, width> load_vector(const E* from, std::int64_t left, bool aligned = true, E fill = E{}) {
  if (aligned && left >= width) return load_vector<E, width>(from);
  Vector<E, width> vector;
  for (int i = 0; i < width; ++i) vector[i] = i < left ? from[i] : fill;
  return vector;
}

/// Writes as much of a vector as an array of `left` elements holds.
template <class E, int width>
__device__ void store_vector(E* to, const Vector<E, width>& vector, std::int64_t left, bool aligned = true) {
  if (aligned && left >= width) return store_vector(to, vector);
  for (int i = 0; i < width; ++i)
    if (i < left) to[i] = vector[i];
}

}  // namespace taut::cuda
