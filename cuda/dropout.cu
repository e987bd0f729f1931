// Dropout. A thread computes 16 bytes at a time, from a Philox block of four words for each four elements:
// the mask is drawn again from the position wherever it is needed, and never stored. All of the output is
// overwritten.

#include "taut/cuda/dropout_launch.hpp"

#include "taut/cuda/kernel/vector.cuh"

namespace taut::cuda {

namespace {

template <class E>
__global__ void dropout_kernel(std::int64_t n, float p, float scale, Argument<RandomStream> random,
                               const E* from, E* to) {
  const RandomStream numbers = random.get();
  constexpr int width = vector_size<E>;
  for (auto i = grid_thread() * width; i < n; i += grid_threads() * width) {
    Vector<E> values = load_vector(from + i, n - i);
#pragma unroll
    for (int k = 0; k < width; k += 4) {
      const auto words = numbers.block(static_cast<std::uint64_t>(i + k) / 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool kept = RandomStream::to_uniform(words[static_cast<unsigned>(j)]) >= p;
        values[k + j] = E(kept ? static_cast<float>(values[k + j]) * scale : 0.0f);
      }
    }
    store_vector(to + i, values, n - i);
  }
}

}  // namespace

template <class E>
void launch_dropout(std::int64_t n, float p, float scale, const Argument<RandomStream>& numbers,
                    const E* from, E* to, Stream stream) {
  if (n == 0) return;
  launch(dropout_kernel<E>, blocks_for(n, block_threads * vector_size<E>), block_threads, 0, stream, n, p,
         scale, numbers, from, to);
}

template void launch_dropout(std::int64_t, float, float, const Argument<RandomStream>&, const float*, float*,
                             Stream);
template void launch_dropout(std::int64_t, float, float, const Argument<RandomStream>&, const bfloat16*,
                             bfloat16*, Stream);

}  // namespace taut::cuda
