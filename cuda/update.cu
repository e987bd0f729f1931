// The optimizers' update rules (update.cuh has the kernel), and sums of squares for clipping: a block for
// each chunk of a gradient, whose threads add float squares in an order that depends on the length alone.

#include "taut/cuda/update.cuh"

#include "taut/core/bfloat16.hpp"
#include "taut/cuda/kernel/block.cuh"
#include "taut/optim/adam_rule.hpp"
#include "taut/optim/sgd_rule.hpp"

namespace taut::cuda {

namespace {

template <class E> __global__ void squares_kernel(std::int64_t n, const E* from, float* to) {
  const std::int64_t begin = blockIdx.x * squares_chunk;
  const std::int64_t end = begin + squares_chunk < n ? begin + squares_chunk : n;
  float total = 0;
  for (std::int64_t i = begin + threadIdx.x * vector_size<E>; i < end; i += blockDim.x * vector_size<E>) {
    const Vector<E> values = load_vector(from + i, n - i);
#pragma unroll
    for (int k = 0; k < vector_size<E>; ++k) {
      const float value = static_cast<float>(values[k]);
      total += value * value;
    }
  }
  total = block_reduce(total, Sum{});
  if (threadIdx.x == 0) to[blockIdx.x] = total;
}

}  // namespace

template <class E> void launch_squares(std::int64_t n, const E* from, float* to, Stream stream) {
  if (n > 0)
    launch(squares_kernel<E>, blocks_for(n, squares_chunk, n), block_threads, 0, stream, n, from, to);
}

template void launch_squares(std::int64_t, const float*, float*, Stream);
template void launch_squares(std::int64_t, const bfloat16*, float*, Stream);

}  // namespace taut::cuda

TAUT_CUDA_UPDATE(taut::optim::SgdRule)
TAUT_CUDA_UPDATE(taut::optim::AdamRule<false>)
TAUT_CUDA_UPDATE(taut::optim::AdamRule<true>)
