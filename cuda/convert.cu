// Conversion between float and bfloat16. A thread converts 4 elements at a time: 16 bytes of the floats and 8
// of the bfloat16. All of the output is overwritten.

#include "taut/cuda/convert_launch.hpp"

#include "taut/cuda/kernel/vector.cuh"

namespace taut::cuda {

namespace {

constexpr int width = vector_size<float>;

template <class From, class To> __global__ void convert(std::int64_t n, const From* from, To* to) {
  const bool aligned = vector_aligned(from) && vector_aligned(to);
  for (auto i = grid_thread() * width; i < n; i += grid_threads() * width) {
    const Vector<From, width> values = load_vector<From, width>(from + i, n - i, aligned);
    Vector<To, width> converted;
#pragma unroll
    for (int k = 0; k < width; ++k) converted[k] = To(float(values[k]));
    store_vector(to + i, converted, n - i, aligned);
  }
}

}  // namespace

template <class From, class To> void launch_convert(std::int64_t n, const From* from, To* to, Stream stream) {
  if (n == 0) return;
  launch(convert<From, To>, blocks_for(n, block_threads * width), block_threads, 0, stream, n, from, to);
}

template void launch_convert(std::int64_t, const float*, bfloat16*, Stream);
template void launch_convert(std::int64_t, const bfloat16*, float*, Stream);

}  // namespace taut::cuda
