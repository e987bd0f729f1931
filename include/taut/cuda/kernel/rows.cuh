#pragma once
// Rows of a matrix, each of which a team of threads works on: neighbouring lanes of a warp, just as many as
// have something to do, or for long rows a whole block. Rows are read in as many passes as they take: a
// team's row stays in the caches. Where a row starts off a multiple of 16 bytes, its elements are read one by
// one.

#include "block.cuh"
#include "vector.cuh"

namespace taut::cuda {

/// Rows of more elements get a block of their own.
inline constexpr std::int64_t longest_row_of_warp = 1024;

/// `size` neighbouring lanes of a warp, a power of two.
struct LaneTeam {
  int size;

  __device__ int rank() const { return static_cast<int>(threadIdx.x) & (size - 1); }
  __device__ std::int64_t row() const { return grid_thread() / size; }
  template <class Combine> __device__ float reduce(float value, const Combine& combine) const {
    return warp_reduce(value, combine, size);
  }
};

/// All threads of a block.
struct BlockTeam {
  int size = block_threads;

  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ std::int64_t row() const { return blockIdx.x; }
  template <class Combine> __device__ float reduce(float value, const Combine& combine) const {
    return block_reduce(value, combine);
  }
};

/// The teams of the last rows that are not there take part in reductions, with rows of no elements.
template <class Team, class Work>
static __global__ void work_on_rows(Team team, std::int64_t rows, std::int64_t n, Work work) {
  const std::int64_t row = team.row();
  work(team, row, row < rows ? n : 0);
}

/// Runs work(team, row, n) for each of the rows of n elements of type E; n may be 0 instead.
template <class E, class Work>
void launch_on_rows(std::int64_t rows, std::int64_t n, const Work& work, void* stream) {
  if (rows == 0) return;
  if (n > longest_row_of_warp)
    return launch(work_on_rows<BlockTeam, Work>, static_cast<unsigned>(rows), block_threads, 0, stream,
                  BlockTeam{}, rows, n, work);
  int lanes = 1;
  while (lanes < warp_size && lanes * vector_size<E> < n) lanes *= 2;
  launch(work_on_rows<LaneTeam, Work>, blocks_covering(rows * lanes, block_threads), block_threads, 0, stream,
         LaneTeam{lanes}, rows, n, work);
}

/// Calls visit(i, x[i …]) for the team's share of the vectors of a row; -∞ fills up the last one.
template <class Team, class E, class Visit>
__device__ void for_each_vector(const Team& team, const E* x, std::int64_t n, const Visit& visit) {
  const bool aligned = vector_aligned(x);
  for (std::int64_t i = team.rank() * vector_size<E>; i < n; i += team.size * vector_size<E>)
    visit(i, load_vector(x + i, n - i, aligned, E(-INFINITY)));
}

/// Of a row x: max x and Σ exp(x - max x), known to the whole team.
struct RowExponentials {
  float largest, sum;
};

template <class Team, class E>
__device__ RowExponentials row_exponentials(const Team& team, const E* x, std::int64_t n) {
  float largest = -INFINITY, sum = 0;
  for_each_vector(team, x, n, [&](std::int64_t, const Vector<E>& values) {
    for (int j = 0; j < vector_size<E>; ++j) largest = Largest{}(largest, float(values[j]));
  });
  largest = team.reduce(largest, Largest{});
  for_each_vector(team, x, n, [&](std::int64_t, const Vector<E>& values) {
    for (int j = 0; j < vector_size<E>; ++j) sum += expf(float(values[j]) - largest);
  });
  return {largest, team.reduce(sum, Sum{})};
}

}  // namespace taut::cuda
