// Reductions over any axes of a tensor as it lies in memory. Neighbouring threads read neighbouring elements:
// where those belong to one result (`rows`), a group of 1 to 32 lanes or a whole block reduces them together,
// 16 bytes a thread where they are aligned; where they belong to neighbouring results (`columns`), each lane
// of a block has a result of its own, and the block's other dimension shares the elements. Where there are
// too few results to occupy the device, each is reduced in parts by several blocks, and a second launch
// reduces the parts' results. Sums are accumulated in float; who adds what to what depends on the shape
// alone, so that results are the same bits in every run. All of the output is overwritten.

#include "taut/cuda/reduce_launch.hpp"

#include "taut/core/bfloat16.hpp"
#include "taut/cuda/buffer.hpp"
#include "taut/cuda/kernel/block.cuh"
#include "taut/cuda/kernel/map_index.cuh"

namespace taut::cuda {

namespace {

/// A reduction of floats to one of them, by a combination of block.cuh.
template <class Combine> struct FloatReducer {
  using Accumulator = float;
  static constexpr float start = Combine::start;
  static constexpr bool is_last = false;

  template <class E> __device__ static float load(E value, std::uint32_t) {
    return static_cast<float>(value);
  }
  __device__ float operator()(float a, float b) const { return Combine{}(a, b); }
  template <class E> __device__ static E finish(float value) { return static_cast<E>(value); }
};

/// The position of the first largest element. Value and position are kept in one number, so that the larger
/// number wins: in the upper half the value, mapped to integers of the same order, in the lower half the
/// complement of the position.
struct ArgmaxReducer {
  using Accumulator = unsigned long long;
  static constexpr Accumulator start = 0;
  static constexpr bool is_last = false;

  template <class E> __device__ static Accumulator load(E element, std::uint32_t position) {
    const float value = static_cast<float>(element) + 0.0f;  // one zero instead of two
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = 0x80000000u;
    const std::uint32_t ordered = value != value ? ~0u : (bits & sign) != 0 ? ~bits : bits | sign;
    return static_cast<Accumulator>(ordered) << 32 | ~position;
  }
  __device__ Accumulator operator()(Accumulator a, Accumulator b) const { return a > b ? a : b; }
  template <class E> __device__ static E finish(Accumulator value) {
    return static_cast<E>(~static_cast<std::uint32_t>(value));
  }
};

/// The first launch of two: leaves the accumulators.
template <class Reducer> struct Unfinished : Reducer {
  template <class E> __device__ static E finish(typename Reducer::Accumulator value) { return value; }
};

/// The second one: begins with accumulators.
template <class Reducer> struct Resumed : Reducer {
  static constexpr bool is_last = true;
  __device__ static auto load(typename Reducer::Accumulator value, std::uint32_t) { return value; }
};

/// What is reduced: results by units, of which each of `parts` has `each`. Units are vectors or elements.
struct Extent {
  std::uint32_t results, units, parts, each;
};

struct Index {
  MapIndex<1> kept, reduced;

  __device__ std::int64_t result(std::uint32_t position) const {
    std::int64_t at[1];
    kept.offsets(position, at);
    return at[0];
  }
  __device__ std::int64_t unit(std::uint32_t position) const {
    std::int64_t at[1];
    reduced.offsets(position, at);
    return at[0];
  }
};

/// Reduces the units begin, begin + step, … below `end`, of `width` elements each, from `from` on. `left`:
/// how many elements there are in all.
template <int width, class Reducer, class E>
__device__ typename Reducer::Accumulator reduce_units(const Index& index, std::uint32_t begin,
                                                      std::uint32_t end, std::uint32_t step,
                                                      std::uint32_t elements, const E* from) {
  const Reducer reducer;
  typename Reducer::Accumulator total = Reducer::start;
  const auto add = [&](std::uint32_t unit, std::int64_t at) {
    if constexpr (width == 1) {
      total = reducer(total, Reducer::load(from[at], unit));
    } else {
      const std::int64_t left = elements - std::int64_t{unit} * width;
      const Vector<E> loaded = load_vector(from + at, left);
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (i < left) total = reducer(total, Reducer::load(loaded[i], unit * width + i));
    }
  };
  if (index.reduced.rank == 1) {
    const std::int64_t stride = index.reduced.strides[0][0];
#pragma unroll 4
    for (std::uint32_t unit = begin; unit < end; unit += step) add(unit, unit * stride);
  } else {
    for (std::uint32_t unit = begin; unit < end; unit += step) add(unit, index.unit(unit));
  }
  return total;
}

/// Groups of `group` threads, at most a warp or else the whole block, reduce a part of a result each.
template <class Reducer, int width, class E, class Out>
__global__ void reduce_rows(const __grid_constant__ Index index, Extent extent, int group,
                            std::uint32_t elements, const E* from, Out* to) {
  const auto threads = static_cast<std::uint32_t>(group);
  const std::uint32_t rows = extent.results * extent.parts, rows_at_once = blockDim.x / threads;
  const std::uint32_t lane = threadIdx.x % threads;
  for (std::uint32_t first = blockIdx.x * rows_at_once; first < rows; first += gridDim.x * rows_at_once) {
    const std::uint32_t row = first + threadIdx.x / threads;
    auto total = Reducer::start;
    if (row < rows) {
      const std::uint32_t part = row / extent.results, begin = part * extent.each;
      const std::uint32_t end = begin + extent.each < extent.units ? begin + extent.each : extent.units;
      total = reduce_units<width, Reducer>(index, begin + lane, end, threads, elements,
                                           from + index.result(row - part * extent.results));
    }
    total = group <= warp_size ? warp_reduce(total, Reducer{}, group) : block_reduce(total, Reducer{});
    if (lane == 0 && row < rows) to[row] = Reducer::template finish<Out>(total);
  }
}

/// A block of `lanes` threads for as many results, times as many as share their elements.
template <class Reducer, class E, class Out>
__global__ void reduce_columns(const __grid_constant__ Index index, Extent extent, int lanes, const E* from,
                               Out* to) {
  using Accumulator = typename Reducer::Accumulator;
  __shared__ Accumulator of_threads[block_threads];
  const auto width = static_cast<std::uint32_t>(lanes);
  const std::uint32_t lane = threadIdx.x % width, share = threadIdx.x / width, shares = blockDim.x / width;
  const std::uint32_t across = (extent.results + width - 1) / width;
  for (std::uint32_t block = blockIdx.x; block < across * extent.parts; block += gridDim.x) {
    const std::uint32_t part = block / across, result = block % across * width + lane;
    const std::uint32_t begin = part * extent.each;
    const std::uint32_t end = begin + extent.each < extent.units ? begin + extent.each : extent.units;
    of_threads[threadIdx.x] = result < extent.results
                                  ? reduce_units<1, Reducer>(index, begin + share, end, shares, extent.units,
                                                             from + index.result(result))
                                  : Reducer::start;
    __syncthreads();
    for (std::uint32_t half = shares / 2; half > 0; half /= 2) {
      if (share < half)
        of_threads[threadIdx.x] = Reducer{}(of_threads[threadIdx.x], of_threads[threadIdx.x + half * width]);
      __syncthreads();
    }
    if (share == 0 && result < extent.results)
      to[part * extent.results + result] = Reducer::template finish<Out>(of_threads[lane]);
    __syncthreads();
  }
}

/// The smallest power of two that is not below n, but `most` at most.
int power_of_two(std::int64_t n, int most) {
  int power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

/// As many blocks as keep a large device busy, whatever the device: sums depend on it.
constexpr std::int64_t enough_blocks = 1024;

/// In how many parts each result is to be reduced so that there are enough blocks, of which each thread still
/// reduces eight units.
template <class Reducer>
Extent divide(std::int64_t results, std::int64_t units, std::int64_t blocks, std::int64_t threads) {
  const std::int64_t most = units / (8 * threads);
  const std::int64_t wanted = (enough_blocks + blocks - 1) / blocks;
  const std::int64_t parts = Reducer::is_last || most < 1 || blocks >= enough_blocks / 2 ? 1
                             : most < wanted                                             ? most
                                                                                         : wanted;
  const std::int64_t each = (units + parts - 1) / parts;
  return {static_cast<std::uint32_t>(results), static_cast<std::uint32_t>(units),
          static_cast<std::uint32_t>(each > 0 ? (units + each - 1) / each : 1),
          static_cast<std::uint32_t>(each)};
}

template <class Reducer, class E, class Out>
void run(const ReducePlan& plan, const E* from, Out* to, Stream stream);

/// Runs `first` for all parts of the results: to `to` if there is one, or else to a buffer whose parts are
/// then reduced.
template <class Reducer, class Out, class First>
void run_in_parts(const Extent& extent, Out* to, Stream stream, const First& first) {
  if constexpr (Reducer::is_last) {
    first(Reducer{}, to);
  } else {
    using Accumulator = typename Reducer::Accumulator;
    if (extent.parts == 1) return first(Reducer{}, to);
    const auto results = static_cast<std::int64_t>(extent.results);
    const Buffer buffer =
        Buffer::allocate(extent.parts * extent.results * sizeof(Accumulator), pool(), stream);
    auto* const partial = reinterpret_cast<Accumulator*>(buffer.data(stream));
    first(Unfinished<Reducer>{}, partial);
    ReducePlan rest;
    const std::int64_t next = 1;
    rest.kept.add_axis(results, &next, 1);
    rest.reduced.add_axis(extent.parts, &results, 1);
    run<Resumed<Reducer>>(rest, partial, to, stream);
  }
}

template <class Reducer, class E, class Out>
void run_rows(const ReducePlan& plan, const E* from, Out* to, Stream stream) {
  constexpr int width = vector_size<E>;
  const std::int64_t results = plan.kept.size(), elements = plan.reduced.size();
  bool vectors = elements >= 2 * width && fits_vectors(plan.reduced, 0, width, from);
  for (int d = 0; d < plan.kept.rank; ++d) vectors = vectors && plan.kept.strides[d][0] % width == 0;
  const int unit = vectors ? width : 1;
  const std::int64_t units = (elements + unit - 1) / unit;
  const int group = units > 4 * block_threads ? block_threads : power_of_two(units, warp_size);
  const std::int64_t rows_at_once = block_threads / group;
  const Extent extent = divide<Reducer>(results, units, (results + rows_at_once - 1) / rows_at_once, group);
  const Index index{MapIndex<1>(plan.kept, 1), MapIndex<1>(plan.reduced, unit)};
  run_in_parts<Reducer>(extent, to, stream, [&](auto reducer, auto* target) {
    using R = decltype(reducer);
    using Target = std::remove_pointer_t<decltype(target)>;
    const std::int64_t rows = results * extent.parts;
    launch(vectors ? reduce_rows<R, width, E, Target> : reduce_rows<R, 1, E, Target>,
           blocks_for(rows, rows_at_once), block_threads, 0, stream, index, extent, group,
           static_cast<std::uint32_t>(elements), from, target);
  });
}

template <class Reducer, class E, class Out>
void run_columns(const ReducePlan& plan, const E* from, Out* to, Stream stream) {
  const std::int64_t results = plan.kept.size(), elements = plan.reduced.size();
  const int lanes = power_of_two(results, warp_size);
  const std::int64_t across = (results + lanes - 1) / lanes;
  const Extent extent = divide<Reducer>(results, elements, across, block_threads / lanes);
  const Index index{MapIndex<1>(plan.kept, 1), MapIndex<1>(plan.reduced, 1)};
  run_in_parts<Reducer>(extent, to, stream, [&](auto reducer, auto* target) {
    using Target = std::remove_pointer_t<decltype(target)>;
    launch(reduce_columns<decltype(reducer), E, Target>, blocks_for(across * extent.parts, 1), block_threads,
           0, stream, index, extent, lanes, from, target);
  });
}

template <class Reducer, class E, class Out>
void run(const ReducePlan& plan, const E* from, Out* to, Stream stream) {
  const bool columns = plan.reduced.strides[0][0] != 1 && plan.kept.size() > 1;
  columns ? run_columns<Reducer>(plan, from, to, stream) : run_rows<Reducer>(plan, from, to, stream);
}

/// Runs a reduction part by part where there are very many results.
template <class Reducer, class E, class Out>
void reduce(const ReducePlan& plan, const E* from, Out* to, Stream stream) {
  if (plan.reduced.size() >= std::int64_t{1} << 31)
    throw Error("reduce: a result can have less than 2^31 elements; reduce one axis after the other");
  for_each_part(plan.kept, [&](const MapPlan& kept) {
    run<Reducer>(ReducePlan{kept, plan.reduced}, from + kept.offsets[0], to + kept.first, stream);
  });
}

}  // namespace

template <class E> void launch_sum(const ReducePlan& plan, const E* from, E* to, Stream stream) {
  reduce<FloatReducer<Sum>>(plan, from, to, stream);
}

template <class E> void launch_max(const ReducePlan& plan, const E* from, E* to, Stream stream) {
  reduce<FloatReducer<Largest>>(plan, from, to, stream);
}

template <class E> void launch_min(const ReducePlan& plan, const E* from, E* to, Stream stream) {
  reduce<FloatReducer<Smallest>>(plan, from, to, stream);
}

template <class E>
void launch_argmax(const ReducePlan& plan, const E* from, std::int64_t* to, Stream stream) {
  reduce<ArgmaxReducer>(plan, from, to, stream);
}

#define TAUT_CUDA_REDUCE(E)                                          \
  template void launch_sum(const ReducePlan&, const E*, E*, Stream); \
  template void launch_max(const ReducePlan&, const E*, E*, Stream); \
  template void launch_min(const ReducePlan&, const E*, E*, Stream); \
  template void launch_argmax(const ReducePlan&, const E*, std::int64_t*, Stream);

TAUT_CUDA_REDUCE(float)
TAUT_CUDA_REDUCE(bfloat16)

}  // namespace taut::cuda
