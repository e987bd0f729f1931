// Lookup of a table's rows by index, and its gradient. A thread copies a vector of a row, or one element
// where rows do not divide into vectors. In the gradient a block belongs to each position that has an index:
// it looks through all indices, 256 at a time, for its own, and adds up what belongs to them in the order of
// the positions, a vector of columns a thread. If one is found before the block's position, another block
// does this row, and it ends. So rows are summed in one order, without atomics, sorting or memory for it;
// what it costs grows with the square of the number of positions only as far as rows are named once or late,
// 8 bytes from the caches a look. Rows that are not named stay the zeros that they have to be at first. Sums
// are in float. An index that is no row looks up NaN, adds to no row, and is never used as one.

#include "taut/cuda/embedding_launch.hpp"

#include "taut/cuda/kernel/block.cuh"
#include "taut/cuda/kernel/divide.cuh"
#include "taut/cuda/kernel/vector.cuh"

namespace taut::cuda {

namespace {

__device__ bool is_row(std::int64_t index, std::int64_t rows) { return 0 <= index && index < rows; }

/// A thread copies `width` elements at a time; the length of rows is a multiple of it.
template <int width, class E>
__global__ void look_up(std::int64_t size, std::int64_t rows, LongDivider length, const E* table,
                        const std::int64_t* indices, E* to) {
  const std::int64_t n = length.divisor;
  for (auto at = grid_thread() * width; at < size; at += grid_threads() * width) {
    const std::int64_t position = length.divide(at), index = indices[position];
    Vector<E, width> values;
    for (int i = 0; i < width; ++i) values[i] = E(NAN);
    if (is_row(index, rows)) values = load_vector<E, width>(table + index * n + (at - position * n));
    store_vector(to + at, values);
  }
}

template <int width, class E>
void launch_look_up(std::int64_t size, std::int64_t rows, std::int64_t n, const E* table,
                    const std::int64_t* indices, E* to, Stream stream) {
  launch(look_up<width, E>, blocks_for(size / width, block_threads), block_threads, 0, stream, size, rows,
         LongDivider(n), table, indices, to);
}

template <class E>
__global__ void sum_named_row(std::int64_t count, std::int64_t rows, std::int64_t n, const E* g,
                              const std::int64_t* indices, E* to) {
  constexpr int warps = block_threads / warp_size;
  __shared__ unsigned named[warps];  // a bit for each of the positions at hand that has the block's index
  const auto positions = static_cast<unsigned>(count);  // blocks share the columns of one
  const std::int64_t own = blockIdx.x % positions, index = indices[own];
  if (!is_row(index, rows)) return;
  const int lane = static_cast<int>(threadIdx.x) % warp_size,
            warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t first = std::int64_t{blockIdx.x / positions} * block_threads;
  const std::int64_t column = (first + threadIdx.x) * vector_size<E>;
  const bool aligned = n % vector_size<E> == 0 && vector_aligned(g, to);
  float sum[vector_size<E>] = {};
  for (std::int64_t begin = 0; begin < count; begin += block_threads) {
    const std::int64_t at = begin + threadIdx.x;
    const unsigned of_warp = __ballot_sync(all_lanes, at < count && indices[at] == index);
    __syncthreads();  // all have read the last ones
    if (lane == 0) named[warp] = of_warp;
    __syncthreads();
    for (int w = 0; w < warps; ++w)
      for (unsigned bits = named[w]; bits != 0; bits &= bits - 1) {
        const std::int64_t position = begin + w * warp_size + __ffs(static_cast<int>(bits)) - 1;
        if (position < own) return;  // as do all threads of the block
        const Vector<E> values = load_vector(g + position * n + column, n - column, aligned);
        for (int i = 0; i < vector_size<E>; ++i) sum[i] += float(values[i]);
      }
  }
  Vector<E> result;
  for (int i = 0; i < vector_size<E>; ++i) result[i] = E(sum[i]);
  store_vector(to + index * n + column, result, n - column, aligned);
}

}  // namespace

template <class E>
void launch_embedding(std::int64_t count, std::int64_t rows, std::int64_t n, const E* table,
                      const std::int64_t* indices, E* to, Stream stream) {
  const std::int64_t size = count * n;
  if (size == 0) return;
  if (n % vector_size<E> == 0 && vector_aligned(table, to))
    launch_look_up<vector_size<E>>(size, rows, n, table, indices, to, stream);
  else
    launch_look_up<1>(size, rows, n, table, indices, to, stream);
}

template <class E>
void launch_embedding_gradient(std::int64_t count, std::int64_t rows, std::int64_t n, const E* g,
                               const std::int64_t* indices, E* to, Stream stream) {
  if (count * n == 0) return;
  const unsigned blocks = static_cast<unsigned>(count) * blocks_covering(n, block_threads * vector_size<E>);
  launch(sum_named_row<E>, blocks, block_threads, 0, stream, count, rows, n, g, indices, to);
}

#define TAUT_INSTANTIATE(E)                                                                               \
  template void launch_embedding(std::int64_t, std::int64_t, std::int64_t, const E*, const std::int64_t*, \
                                 E*, Stream);                                                             \
  template void launch_embedding_gradient(std::int64_t, std::int64_t, std::int64_t, const E*,             \
                                          const std::int64_t*, E*, Stream);
TAUT_INSTANTIATE(float)
TAUT_INSTANTIATE(bfloat16)
#undef TAUT_INSTANTIATE

}  // namespace taut::cuda
