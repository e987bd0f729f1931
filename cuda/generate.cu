// Constants and random numbers. A thread makes a vector of 16 bytes at a time; random numbers come from
// Philox blocks of four words, computed from the position alone, so that they are the CPU's whatever the
// launch. All of the output is overwritten.

#include "taut/cuda/generate.hpp"

#include "taut/core/bfloat16.hpp"
#include "taut/cuda/kernel/vector.cuh"

namespace taut::cuda {

namespace {

/// Calls element(i) for the places of each vector and writes what it gives.
template <class E, class F> __device__ void generate(std::int64_t n, E* to, const F& element) {
  constexpr int width = vector_size<E>;
  const bool aligned = vector_aligned(to);
  for (auto i = grid_thread() * width; i < n; i += grid_threads() * width) {
    Vector<E> vector;
    element(i, vector);
    store_vector(to + i, vector, n - i, aligned);
  }
}

template <class E> __global__ void fill_kernel(std::int64_t n, E value, E* to) {
  generate(n, to, [=](std::int64_t, Vector<E>& vector) {
#pragma unroll
    for (int k = 0; k < vector_size<E>; ++k) vector[k] = value;
  });
}

template <class E>
__global__ void uniform_kernel(std::int64_t n, float low, float high, Argument<RandomStream> random, E* to) {
  const RandomStream numbers = random.get();
  generate(n, to, [=](std::int64_t i, Vector<E>& vector) {
#pragma unroll
    for (int k = 0; k < vector_size<E>; k += 4) {
      const auto words = numbers.block(static_cast<std::uint64_t>(i + k) / 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float number = RandomStream::to_uniform(words[static_cast<unsigned>(j)]);
        vector[k + j] = E(RandomStream::affine(number, low, high - low));
      }
    }
  });
}

template <class E>
__global__ void normal_kernel(std::int64_t n, float mean, float deviation, Argument<RandomStream> random,
                              E* to) {
  const RandomStream numbers = random.get();
  generate(n, to, [=](std::int64_t i, Vector<E>& vector) {
#pragma unroll
    for (int k = 0; k < vector_size<E>; k += 2) {
      const auto pair = numbers.normal_pair<float>(static_cast<std::uint64_t>(i + k) / 2);
      vector[k] = E(RandomStream::affine(pair[0], mean, deviation));
      vector[k + 1] = E(RandomStream::affine(pair[1], mean, deviation));
    }
  });
}

/// Launches a kernel whose threads make a vector each, with the arguments that follow the length.
template <class E, class Kernel, class... Arguments>
void launch_generator(Kernel kernel, std::int64_t n, Stream stream, const Arguments&... arguments) {
  if (n == 0) return;
  launch(kernel, blocks_for(n, block_threads * vector_size<E>), block_threads, 0, stream, n, arguments...);
}

}  // namespace

template <class E> void launch_fill(std::int64_t n, E value, E* to, Stream stream) {
  launch_generator<E>(fill_kernel<E>, n, stream, value, to);
}

template <class E>
void launch_uniform(std::int64_t n, float low, float high, const Argument<RandomStream>& numbers, E* to,
                    Stream stream) {
  launch_generator<E>(uniform_kernel<E>, n, stream, low, high, numbers, to);
}

template <class E>
void launch_normal(std::int64_t n, float mean, float deviation, const Argument<RandomStream>& numbers, E* to,
                   Stream stream) {
  launch_generator<E>(normal_kernel<E>, n, stream, mean, deviation, numbers, to);
}

template void launch_fill(std::int64_t, float, float*, Stream);
template void launch_fill(std::int64_t, bfloat16, bfloat16*, Stream);
template void launch_fill(std::int64_t, std::int64_t, std::int64_t*, Stream);
template void launch_uniform(std::int64_t, float, float, const Argument<RandomStream>&, float*, Stream);
template void launch_uniform(std::int64_t, float, float, const Argument<RandomStream>&, bfloat16*, Stream);
template void launch_normal(std::int64_t, float, float, const Argument<RandomStream>&, float*, Stream);
template void launch_normal(std::int64_t, float, float, const Argument<RandomStream>&, bfloat16*, Stream);

}  // namespace taut::cuda
