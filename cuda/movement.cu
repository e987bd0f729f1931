// Copies between strided views: permutations, broadcasts, slices and their adjoints, changes of layout. Three
// kernels, of which the launcher takes the first that fits. Where both sides advance alike along the
// innermost axis, or the source is repeated along it, a thread moves 16 bytes. Where the innermost axis of
// the result is another one than the source's, as in a transpose, a block of 32 x 8 threads moves square
// tiles of 32 through shared memory (a column wider, so that there are no bank conflicts), and both sides are
// accessed in whole lines. Otherwise a thread moves an element. Exactly the plan's elements of the target are
// overwritten.

#include "taut/core/bfloat16.hpp"
#include "taut/cuda/copy.hpp"
#include "taut/cuda/kernel/map_index.cuh"

namespace taut::cuda {

namespace {

constexpr int source = 0, target = 1;  // the operands of a plan

template <class E>
__global__ void copy_vectors(const __grid_constant__ MapIndex<2> index, std::uint32_t n, bool repeated,
                             const E* from, E* to) {
  constexpr int width = vector_size<E>;
  const std::uint32_t vectors = (n + width - 1) / width;
  for (auto v = static_cast<std::uint32_t>(grid_thread()); v < vectors; v += gridDim.x * blockDim.x) {
    std::int64_t at[2];
    index.offsets(v, at);
    const std::int64_t left = n - std::int64_t{v} * width;
    Vector<E> moved;
    if (repeated) {
      const E value = from[at[source]];
#pragma unroll
      for (int i = 0; i < width; ++i) moved[i] = value;
    } else {
      moved = load_vector(from + at[source], left);
    }
    store_vector(to + at[target], moved, left);
  }
}

template <class E>
__global__ void copy_elements(const __grid_constant__ MapIndex<2> index, std::uint32_t n, const E* from,
                              E* to) {
  for (auto i = static_cast<std::uint32_t>(grid_thread()); i < n; i += gridDim.x * blockDim.x) {
    std::int64_t at[2];
    index.offsets(i, at);
    to[at[target]] = from[at[source]];
  }
}

constexpr int tile = 32, tile_rows = 8;

/// Two axes of a copy: along `x` the target's elements lie together, along `y` the source's.
struct Plane {
  std::int64_t x, y;                // extents
  std::int64_t source_x, target_y;  // strides
  Divider across, down;             // by the tiles along each
};

/// The planes of the other axes, tile after tile.
template <class E>
__global__ void copy_tiles(const __grid_constant__ MapIndex<2> planes, const __grid_constant__ Plane plane,
                           std::uint32_t tiles, const E* from, E* to) {
  __shared__ E moved[tile][tile + 1];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  for (std::uint32_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::uint32_t line = plane.across.divide(index), position = plane.down.divide(line);
    std::int64_t at[2];
    planes.offsets(position, at);
    const std::int64_t x = std::int64_t{index - line * plane.across.divisor} * tile;
    const std::int64_t y = std::int64_t{line - position * plane.down.divisor} * tile;
    for (int k = first; k < tile; k += tile_rows)
      if (x + k < plane.x && y + lane < plane.y)
        moved[k][lane] = from[at[source] + (x + k) * plane.source_x + y + lane];
    __syncthreads();
    for (int k = first; k < tile; k += tile_rows)
      if (y + k < plane.y && x + lane < plane.x)
        to[at[target] + (y + k) * plane.target_y + x + lane] = moved[lane][k];
    __syncthreads();
  }
}

/// The axis along which the source's elements lie together, if it is worth going through tiles for it.
int axis_of_tiles(const MapPlan& plan) {
  if (plan.strides[0][target] != 1 || plan.strides[0][source] <= 1) return 0;
  for (int d = 1; d < plan.rank; ++d)
    if (plan.strides[d][source] == 1 && plan.extents[d] >= 8 && plan.extents[0] >= 8) return d;
  return 0;
}

template <class E> void launch_tiles(const MapPlan& plan, int axis, const E* from, E* to, Stream stream) {
  const unsigned across = blocks_covering(plan.extents[0], tile),
                 down = blocks_covering(plan.extents[axis], tile);
  const Plane plane{plan.extents[0], plan.extents[axis], plan.strides[0][source], plan.strides[axis][target],
                    Divider(across), Divider(down)};
  MapPlan planes;
  for (int d = 1; d < plan.rank; ++d)
    if (d != axis) planes.add_axis(plan.extents[d], plan.strides[d], 2);
  const auto tiles = static_cast<std::uint32_t>(planes.size()) * across * down;
  launch(copy_tiles<E>, blocks_for(tiles, 1), dim3(tile, tile_rows), 0, stream, MapIndex<2>(planes, 1), plane,
         tiles, from, to);
}

template <class E> void launch_part(const MapPlan& plan, const E* from, E* to, Stream stream) {
  constexpr int width = vector_size<E>;
  const auto n = static_cast<std::uint32_t>(plan.size());
  from += plan.offsets[source];
  to += plan.offsets[target];
  if (plan.strides[0][target] == 1 && fits_vectors(plan, source, width, from) &&
      fits_vectors(plan, target, width, to))
    launch(copy_vectors<E>, blocks_to_occupy((n + width - 1) / width), block_threads, 0, stream,
           MapIndex<2>(plan, width), n, plan.strides[0][source] == 0, from, to);
  else if (const int axis = axis_of_tiles(plan))
    launch_tiles(plan, axis, from, to, stream);
  else
    launch(copy_elements<E>, blocks_to_occupy(n), block_threads, 0, stream, MapIndex<2>(plan, 1), n, from,
           to);
}

}  // namespace

template <class E> void launch_copy(const MapPlan& plan, const E* from, E* to, Stream stream) {
  for_each_part(plan, [&](const MapPlan& part) { launch_part(part, from, to, stream); });
}

template void launch_copy(const MapPlan&, const float*, float*, Stream);
template void launch_copy(const MapPlan&, const bfloat16*, bfloat16*, Stream);
template void launch_copy(const MapPlan&, const std::int64_t*, std::int64_t*, Stream);

}  // namespace taut::cuda
