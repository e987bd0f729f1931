// The optimizers' update rules (update.cuh has the kernel), and sums of squares for clipping: a block for
// each chunk of a gradient (kernel/chunks.cuh), whose threads add float squares in an order that depends on
// the length alone. One more block adds the sums, in double, and leaves the factor of clipping in the
// device's memory, where the update finds it: the host need not wait.

#include "taut/cuda/update.cuh"

#include "taut/core/bfloat16.hpp"
#include "taut/cuda/kernel/block.cuh"
#include "taut/optim/adam_rule.hpp"
#include "taut/optim/sgd_rule.hpp"

namespace taut::cuda {

namespace {

template <class E>
__global__ void squares_kernel(const __grid_constant__ ChunkTable<Elements<E>, squares_chunk> table,
                               float* to) {
  const Chunk own = table.chunk(blockIdx.x);
  const Elements<E>& from = table.items[own.item];
  float total = 0;
  for (auto i = own.begin + threadIdx.x * vector_size<E>; i < own.end; i += blockDim.x * vector_size<E>) {
    const Vector<E> values = load_vector(from.data + i, from.size - i);
#pragma unroll
    for (int k = 0; k < vector_size<E>; ++k) {
      const float value = static_cast<float>(values[k]);
      total += value * value;
    }
  }
  total = block_reduce(total, Sum{});
  if (threadIdx.x == 0) to[blockIdx.x] = total;
}

__global__ void clip_kernel(std::int64_t count, const float* sums, float most, float* norm, float* factor) {
  double total = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) total += static_cast<double>(sums[i]);
  total = block_reduce(total, Sum{});
  if (threadIdx.x != 0) return;
  *norm = static_cast<float>(sqrt(total));
  const float clipped = most / (*norm + 1e-6f);
  *factor = clipped >= 1 ? 1.0f : clipped;
}

}  // namespace

template <class E> void launch_squares(const Elements<E>* items, int count, float* to, Stream stream) {
  for_each_table<squares_chunk>(items, count, [&](const ChunkTable<Elements<E>, squares_chunk>& table) {
    launch(squares_kernel<E>, table.blocks(), block_threads, 0, stream, table, to);
    to += table.blocks();
  });
}

void launch_clip(std::int64_t count, const float* sums, float most, float* norm, float* factor,
                 Stream stream) {
  launch(clip_kernel, 1, block_threads, 0, stream, count, sums, most, norm, factor);
}

template void launch_squares(const Elements<float>*, int, float*, Stream);
template void launch_squares(const Elements<bfloat16>*, int, float*, Stream);

}  // namespace taut::cuda

TAUT_CUDA_UPDATE(taut::optim::SgdRule)
TAUT_CUDA_UPDATE(taut::optim::AdamRule<false>)
TAUT_CUDA_UPDATE(taut::optim::AdamRule<true>)
