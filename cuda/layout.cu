// Transposes of matrices, by which images change their layout. A block of 32 x 8 threads moves square tiles
// of 32 through shared memory, a column wider than a tile so that neither side has bank conflicts: reads and
// writes are both of whole lines. All of the output is overwritten.

#include "taut/cuda/layout.hpp"

#include "launch.hpp"
#include "taut/core/bfloat16.hpp"

namespace taut::cuda {

namespace {

constexpr int tile = 32, tile_rows = 8;

template <class E>
__global__ void transpose_kernel(std::int64_t tiles, std::int64_t rows, std::int64_t columns, const E* from,
                                 E* to) {
  __shared__ E moved[tile][tile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t across = (columns + tile - 1) / tile, down = (rows + tile - 1) / tile;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::int64_t matrix = index / (across * down) * (rows * columns);
    const std::int64_t row = index / across % down * tile, column = index % across * tile;
    for (int k = y; k < tile; k += tile_rows)
      if (row + k < rows && column + x < columns)
        moved[k][x] = from[matrix + (row + k) * columns + column + x];
    __syncthreads();
    for (int k = y; k < tile; k += tile_rows)
      if (column + k < columns && row + x < rows) to[matrix + (column + k) * rows + row + x] = moved[x][k];
    __syncthreads();
  }
}

}  // namespace

template <class E>
void launch_transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const E* from, E* to,
                      Stream stream) {
  const std::int64_t tiles = batch * ((rows + tile - 1) / tile) * ((columns + tile - 1) / tile);
  if (tiles == 0) return;
  launch(transpose_kernel<E>, blocks_for(tiles, 1), dim3(tile, tile_rows), 0, stream, tiles, rows, columns,
         from, to);
}

template void launch_transpose(std::int64_t, std::int64_t, std::int64_t, const float*, float*, Stream);
template void launch_transpose(std::int64_t, std::int64_t, std::int64_t, const bfloat16*, bfloat16*, Stream);
template void launch_transpose(std::int64_t, std::int64_t, std::int64_t, const std::int64_t*, std::int64_t*,
                               Stream);

}  // namespace taut::cuda
