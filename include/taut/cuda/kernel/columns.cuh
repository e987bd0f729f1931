#pragma once
// Matrices [rows, columns] whose columns have parameters or sums of their own, such as images with the
// channels last: a row is a pixel, a column a channel. A thread takes a vector of neighbouring columns, or a
// single one where columns do not divide into vectors, and every so many rows: what belongs to its columns
// stays in its registers, and nothing is divided. Sums over rows are made in two stages, with a partial sum
// of each group of rows in between, whose number depends on the matrix alone: results are the same bits on
// every device.

#include <algorithm>

#include "block.cuh"
#include "vector.cuh"

namespace taut::cuda {

/// The threads over a matrix: x over vectors of `width` columns, y over rows.
struct ColumnThreads {
  int width;
  dim3 block;
  unsigned column_blocks;

  template <class E, class... Arrays>
  static ColumnThreads over(std::int64_t columns, const E* array, const Arrays*... arrays) {
    const bool whole = columns % vector_size<E> == 0 && vector_aligned(array, arrays...);
    ColumnThreads threads{whole ? vector_size<E> : 1, dim3(1), 1};
    const std::int64_t vectors = columns / threads.width;
    while (threads.block.x < warp_size && threads.block.x < vectors) threads.block.x *= 2;
    threads.block.y = block_threads / threads.block.x;
    threads.column_blocks = blocks_covering(vectors, threads.block.x);
    return threads;
  }

  /// A grid that leaves some rows for each thread, so that parameters are read for more than one.
  dim3 grid(std::int64_t rows) const {
    constexpr std::int64_t rows_of_thread = 4;
    return {column_blocks, blocks_for(rows, rows_of_thread * block.y, 4096)};
  }
};

/// The rows and columns of a thread: `count` rows from `row` on in steps of `row_step`, whose elements from
/// `column` on have offsets from `at` on in steps of `step`. There are none if the column is beyond the last.
struct ThreadRows {
  std::int64_t column, row, row_step, at, step, count;
};

__device__ inline ThreadRows thread_rows(std::int64_t rows, std::int64_t columns, int width) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  const std::int64_t first = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
  const std::int64_t count = column < columns && first < rows ? (rows - first + step - 1) / step : 0;
  return {column, first, step, first * columns + column, step * columns, count};
}

/// Runs `launch_with(std::integral_constant<int, width>)` for the width of the threads' vectors.
template <class E, class Launch> void with_width(const ColumnThreads& threads, const Launch& launch_with) {
  if (threads.width == 1)
    launch_with(std::integral_constant<int, 1>{});
  else
    launch_with(std::integral_constant<int, vector_size<E>>{});
}

/// Sums of gradients, plain and times the centred values that they belong to: a `Total`.
template <int width> struct GradientSums {
  float plain[width], centred[width];

  __device__ static GradientSums zero() {
    GradientSums sums;
    for (int i = 0; i < width; ++i) sums.plain[i] = sums.centred[i] = 0;
    return sums;
  }
  __device__ void merge(const GradientSums& other) {
    for (int i = 0; i < width; ++i) {
      plain[i] += other.plain[i];
      centred[i] += other.centred[i];
    }
  }
  __device__ GradientSums<1> of(int i) const { return {{plain[i]}, {centred[i]}}; }
};

/// Adds up the rows of a thread by source.add(sum, rows), those of the block's threads in the order of a
/// tree, and writes the sums of each column to partial[blockIdx.y, column]. `Source` has a template
/// `Total<width>` with `zero()`, `merge(other)` and `of(i)`, the i-th column's as a `Total<1>`.
template <int width, class Source>
static __global__ void sum_columns(std::int64_t rows, std::int64_t columns, Source source,
                                   typename Source::template Total<1>* partial) {
  using Total = typename Source::template Total<width>;
  __shared__ Total of_threads[block_threads];
  const ThreadRows own = thread_rows(rows, columns, width);
  Total sum = Total::zero();
  source.template add<width>(sum, own);
  Total* const shared = of_threads + threadIdx.x;
  shared[threadIdx.y * blockDim.x] = sum;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      sum.merge(shared[(threadIdx.y + half) * blockDim.x]);
      shared[threadIdx.y * blockDim.x] = sum;
    }
  }
  if (threadIdx.y == 0 && own.column < columns)
    for (int i = 0; i < width; ++i) partial[blockIdx.y * columns + own.column + i] = sum.of(i);
}

inline constexpr unsigned merging_threads = 8;  ///< the most that share the groups of a column

/// Merges the groups' partial sums of each column, and calls finish(column, sum).
template <class Total, class Finish>
static __global__ void finish_columns(std::int64_t groups, std::int64_t columns, const Total* partial,
                                      Finish finish) {
  __shared__ Total of_threads[merging_threads][warp_size];
  const std::int64_t column = std::int64_t{blockIdx.x} * warp_size + threadIdx.x;
  Total sum = Total::zero();
  if (column < columns)
    for (std::int64_t group = threadIdx.y; group < groups; group += blockDim.y)
      sum.merge(partial[group * columns + column]);
  of_threads[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (unsigned k = 1; k < blockDim.y; ++k) sum.merge(of_threads[k][threadIdx.x]);
  finish(column, sum);
}

/// Sums over the rows of a matrix in `groups` groups: calls finish(column, sum) for each column. `partial` is
/// for groups × columns sums.
template <class E, class Source, class Finish>
void launch_sum_columns(const ColumnThreads& threads, std::int64_t rows, std::int64_t columns,
                        std::int64_t groups, const Source& source, void* partial, const Finish& finish,
                        void* stream) {
  using Total = typename Source::template Total<1>;
  auto* const sums = static_cast<Total*>(partial);
  const dim3 grid(threads.column_blocks, static_cast<unsigned>(groups));
  dim3 block = threads.block;
  while (block.y > 1 && groups * (block.y / 2) >= rows) block.y /= 2;  // no threads without a row
  with_width<E>(threads, [&](auto width) {
    launch(sum_columns<width(), Source>, grid, block, 0, stream, rows, columns, source, sums);
  });
  const dim3 merging(warp_size, std::min(grid.y, merging_threads));
  launch(finish_columns<Total, Finish>, blocks_covering(columns, warp_size), merging, 0, stream, groups,
         columns, static_cast<const Total*>(sums), finish);
}

}  // namespace taut::cuda
