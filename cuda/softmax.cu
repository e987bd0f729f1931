// Softmax and its logarithm. Along the last axis a team of threads takes a row (rows.cuh); along another one
// a thread takes a column, so that the threads of a warp read neighbours. Three passes: maximum, sum of
// exponentials, result; the first from memory, the others from the caches. All is computed in float. All of
// the output is overwritten.

#include "taut/cuda/softmax_launch.hpp"

#include "taut/cuda/kernel/rows.cuh"

namespace taut::cuda {

namespace {

/// The result for an element of a row with the given maximum; `total` is 1 / Σ exp, or ln Σ exp.
__device__ float softmax_of(bool logarithm, float x, float largest, float total) {
  return logarithm ? (x - largest) - total : expf(x - largest) * total;
}
__device__ float total_of(bool logarithm, float sum) { return logarithm ? logf(sum) : 1 / sum; }

template <class E> struct SoftmaxOfRow {
  bool logarithm;
  std::int64_t length;
  const E* x;
  E* y;

  template <class Team> __device__ void operator()(const Team& team, std::int64_t row, std::int64_t n) const {
    const E* const from = x + row * length;
    E* const to = y + row * length;
    const RowExponentials of_row = row_exponentials(team, from, n);
    const float total = total_of(logarithm, of_row.sum);
    const bool aligned = vector_aligned(to);
    for_each_vector(team, from, n, [&](std::int64_t i, Vector<E> values) {
      for (int j = 0; j < vector_size<E>; ++j)
        values[j] = E(softmax_of(logarithm, float(values[j]), of_row.largest, total));
      store_vector(to + i, values, n - i, aligned);
    });
  }
};

template <class E>
__global__ void softmax_of_columns(bool logarithm, std::int64_t columns, std::int64_t n, std::int64_t inner,
                                   const E* x, E* y) {
  for (auto column = grid_thread(); column < columns; column += grid_threads()) {
    const std::int64_t first = column / inner * n * inner + column % inner, end = first + n * inner;
    float largest = -INFINITY, sum = 0;
    for (auto at = first; at < end; at += inner) largest = Largest{}(largest, float(x[at]));
    for (auto at = first; at < end;) {
      float piece = 0;  // sums of pieces round less than one long sum
      for (int k = 0; k < 32 && at < end; ++k, at += inner) piece += expf(float(x[at]) - largest);
      sum += piece;
    }
    const float total = total_of(logarithm, sum);
    for (auto at = first; at < end; at += inner)
      y[at] = E(softmax_of(logarithm, float(x[at]), largest, total));
  }
}

}  // namespace

template <class E>
void launch_softmax(bool logarithm, std::int64_t outer, std::int64_t n, std::int64_t inner, const E* x, E* y,
                    Stream stream) {
  const std::int64_t columns = outer * inner;
  if (columns * n == 0) return;
  if (inner == 1) return launch_on_rows<E>(columns, n, SoftmaxOfRow<E>{logarithm, n, x, y}, stream);
  launch(softmax_of_columns<E>, blocks_for(columns, block_threads), block_threads, 0, stream, logarithm,
         columns, n, inner, x, y);
}

template void launch_softmax(bool, std::int64_t, std::int64_t, std::int64_t, const float*, float*, Stream);
template void launch_softmax(bool, std::int64_t, std::int64_t, std::int64_t, const bfloat16*, bfloat16*,
                             Stream);

}  // namespace taut::cuda
