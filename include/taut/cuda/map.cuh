#pragma once
// The kernels of elementwise operators, and how to compile them for functors of one's own: a `.cu` file that
// includes this header and says `TAUT_CUDA_MAP(MyActivation, 1)`, outside of namespaces, has
// `map(MyActivation{}, x)` and its derivatives, up to the second, on `CudaTensor`. Compile it as C++20 with
// --expt-relaxed-constexpr, since functors are plain `constexpr` functions.
//
// The result is contiguous, and a thread makes 16 bytes of it at a time. An operand that is contiguous along
// the innermost axis is read 16 bytes at a time, too; one that is repeated along it, once. Where the
// innermost axis is no multiple of that, where an operand has another stride there or is not aligned, threads
// make one element at a time. Both compute in float. Results may be written over an operand that lies like
// them: a thread has read all its elements when it writes. No kernel writes outside of the result, all of
// which is overwritten.

#include <utility>

#include "elementwise_launch.hpp"
#include "kernel/map_index.cuh"

namespace taut::cuda {
namespace detail {

template <class E, int N> struct MapOperands {
  const E* from[N];
  bool repeated[N];  // along the innermost axis
};

/// op of one element of each operand.
template <class E, class Op, int N, class Element, int... K>
__device__ E apply(const Op& op, const Element& element, std::integer_sequence<int, K...>) {
  return static_cast<E>(op(static_cast<float>(element(K))...));
}

/// `n` elements, of which each thread makes a vector of consecutive ones at a time.
template <class Op, class E, int N>
__global__ void map_vectors(Op op, const __grid_constant__ MapIndex<N> index, std::uint32_t n,
                            MapOperands<E, N> operands, E* to) {
  constexpr int width = vector_size<E>;
  const std::uint32_t vectors = (n + width - 1) / width;
  for (auto v = static_cast<std::uint32_t>(grid_thread()); v < vectors; v += gridDim.x * blockDim.x) {
    std::int64_t at[N];
    index.offsets(v, at);
    const std::int64_t left = n - std::int64_t{v} * width;
    Vector<E> in[N], out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const E* const from = operands.from[k] + at[k];
      if (operands.repeated[k]) {
        const E value = *from;
#pragma unroll
        for (int i = 0; i < width; ++i) in[k][i] = value;
      } else {
        in[k] = load_vector(from, left);
      }
    }
#pragma unroll
    for (int i = 0; i < width; ++i)
      out[i] = apply<E, Op, N>(
          op, [&](int k) { return in[k][i]; }, std::make_integer_sequence<int, N>{});
    store_vector(to + std::int64_t{v} * width, out, left);
  }
}

/// `n` elements, of which each thread makes one at a time.
template <class Op, class E, int N>
__global__ void map_elements(Op op, const __grid_constant__ MapIndex<N> index, std::uint32_t n,
                             MapOperands<E, N> operands, E* to) {
  for (auto i = static_cast<std::uint32_t>(grid_thread()); i < n; i += gridDim.x * blockDim.x) {
    std::int64_t at[N];
    index.offsets(i, at);
    to[i] = apply<E, Op, N>(
        op, [&](int k) { return operands.from[k][at[k]]; }, std::make_integer_sequence<int, N>{});
  }
}

/// Launches one part of a plan.
template <class Op, class E, int N>
void launch_part(const Op& op, const MapPlan& plan, E* to, const E* const* from, Stream stream) {
  MapOperands<E, N> operands;
  to += plan.first;
  bool vectors = derivative_order<Op> < 2 && vector_aligned(to);
  for (int k = 0; k < N; ++k) {
    operands.from[k] = from[k] + plan.offsets[k];
    operands.repeated[k] = plan.strides[0][k] == 0;
    vectors = vectors && fits_vectors(plan, k, vector_size<E>, operands.from[k]);
  }
  const auto n = static_cast<std::uint32_t>(plan.size());
  if constexpr (derivative_order<Op> < 2) {
    constexpr int width = vector_size<E>;
    if (vectors) {
      launch(map_vectors<Op, E, N>, blocks_to_occupy((n + width - 1) / width), block_threads, 0, stream, op,
             MapIndex<N>(plan, width), n, operands, to);
      return;
    }
  }
  launch(map_elements<Op, E, N>, blocks_to_occupy(n), block_threads, 0, stream, op, MapIndex<N>(plan, 1), n,
         operands, to);
}

}  // namespace detail

template <class Op, class E, int N>
void launch_map(const Op& op, const MapPlan& plan, E* to, const E* const* from, Stream stream) {
  for_each_part(plan,
                [&](const MapPlan& part) { detail::launch_part<Op, E, N>(op, part, to, from, stream); });
}

namespace detail {

/// The launchers of a functor of N operands and of its derivatives, up to the second.
template <class Op, int N> struct MapFamily {
  using Launcher = void (*)();

  /// Refers to them all, so that they are compiled.
  static void list(void (*visit)(Launcher)) {
    if constexpr (triviality<Op, N>() == Triviality::none) {
      visit(reinterpret_cast<Launcher>(&launch_map<Op, float, N>));
      visit(reinterpret_cast<Launcher>(&launch_map<Op, bfloat16, N>));
    }
    if constexpr (N == 1 && HasOutputGradient<Op>)
      MapFamily<op::PartialFromOutput<Op>, 2>::list(visit);
    else if constexpr (derivative_order<Op> < most_derivatives)
      list_partials(visit, std::make_integer_sequence<int, N>{});
  }

 private:
  template <int... I> static void list_partials(void (*visit)(Launcher), std::integer_sequence<int, I...>) {
    (MapFamily<op::Partial<Op, I>, N + 1>::list(visit), ...);
  }
};

template <class Op> using BindFirst = op::Bind<Op, 0>;
template <class Op> using BindSecond = op::Bind<Op, 1>;

}  // namespace detail
}  // namespace taut::cuda

/// Compiles the kernels of an elementwise functor of so many operands, and of its derivatives.
#define TAUT_CUDA_MAP(Functor, operands) template struct taut::cuda::detail::MapFamily<Functor, operands>;

/// The same for a functor of two operands, either of which may be a number.
#define TAUT_CUDA_MAP_BINARY(Functor)                      \
  TAUT_CUDA_MAP(Functor, 2)                                \
  TAUT_CUDA_MAP(taut::cuda::detail::BindFirst<Functor>, 1) \
  TAUT_CUDA_MAP(taut::cuda::detail::BindSecond<Functor>, 1)
