#pragma once
// The kernel of optimizers' update rules, and how to compile it for a rule of one's own: a `.cu` file that
// includes this header and says `TAUT_CUDA_UPDATE(MyRule)`, outside of namespaces, has `MyRule` on
// `CudaTensor`. The rule's call operator must be `constexpr`; compile with --expt-relaxed-constexpr.
//
// One launch updates as many parameters as its arguments can name, dozens (kernel/chunks.cuh). A block takes
// a chunk of one parameter's elements; a thread, 4 elements at a time of the parameter, the gradient and each
// state: 16 bytes of floats. All is computed in float, and states are floats. Of a bfloat16 parameter it is
// the float master that is updated, and in the same pass the parameter becomes what the master rounds to.
// Parameters, masters and states are updated in place. The rule and the scale may be in the device's memory:
// the factor of clipping is computed there, and what a graph replays takes the rule from there.

#include <type_traits>
#include <utility>

#include "kernel/chunks.cuh"
#include "kernel/vector.cuh"
#include "update_launch.hpp"

namespace taut::cuda {
namespace detail {

/// Elements that a block updates.
inline constexpr int update_chunk = 4096;

template <class E, int States> using UpdateTable = ChunkTable<UpdatePointers<E, States>, update_chunk>;

/// What a thread updates at once.
inline constexpr int update_width = vector_size<float>;
template <class E> using UpdateVector = Vector<E, update_width>;

/// The values to update of a vector of parameters, the i-th and those after it: floats themselves, and the
/// masters of others. Where a master does not round to the parameter, somebody has assigned to that.
template <class E, int States>
__device__ UpdateVector<float> wide_parameters(const UpdatePointers<E, States>& item, std::int64_t i,
                                               const UpdateVector<E>& parameter) {
  if constexpr (std::is_same_v<E, float>) {
    return parameter;
  } else {
    UpdateVector<float> values = load_vector(item.master + i, item.size - i);
#pragma unroll
    for (int k = 0; k < update_width; ++k) {
      const float narrow = static_cast<float>(parameter[k]);
      if (static_cast<float>(static_cast<E>(values[k])) != narrow) values[k] = narrow;
    }
    return values;
  }
}

/// Updates a vector of an item's elements, from the i-th on.
template <class Rule, class E, int States, std::size_t... K>
__device__ void update_vector(const Rule& rule, float scale, const UpdatePointers<E, States>& item,
                              std::int64_t i, std::index_sequence<K...>) {
  const std::int64_t left = item.size - i;
  UpdateVector<E> parameter = load_vector<E, update_width>(item.parameter + i, left);
  const UpdateVector<E> gradient = load_vector<E, update_width>(item.gradient + i, left);
  [[maybe_unused]] UpdateVector<float> states[States > 0 ? States : 1] = {
      load_vector(item.state[K] + i, left)...};
  UpdateVector<float> values = wide_parameters(item, i, parameter);
#pragma unroll
  for (int k = 0; k < update_width; ++k) {
    rule(values[k], scale * static_cast<float>(gradient[k]), states[K][k]...);
    parameter[k] = static_cast<E>(values[k]);
  }
  store_vector(item.parameter + i, parameter, left);
  if constexpr (!std::is_same_v<E, float>) store_vector(item.master + i, values, left);
  (store_vector(item.state[K] + i, states[K], left), ...);
}

template <class Rule, class E, int States>
__global__ void update_kernel(Argument<Rule> rule_argument, Argument<float> scale_argument,
                              const __grid_constant__ UpdateTable<E, States> table) {
  const Rule rule = rule_argument.get();
  const float scale = scale_argument.get();
  const Chunk own = table.chunk(blockIdx.x);
  for (std::int64_t i = own.begin + threadIdx.x * update_width; i < own.end; i += blockDim.x * update_width)
    update_vector(rule, scale, table.items[own.item], i, std::make_index_sequence<States>{});
}

}  // namespace detail

template <class Rule, class E>
void launch_update(const Argument<Rule>& rule, const Argument<float>& scale,
                   const UpdatePointers<E, Rule::states>* items, int count, Stream stream) {
  for_each_table<detail::update_chunk>(items, count, [&](const detail::UpdateTable<E, Rule::states>& table) {
    launch(detail::update_kernel<Rule, E, Rule::states>, table.blocks(), block_threads, 0, stream, rule,
           scale, table);
  });
}

}  // namespace taut::cuda

/// Compiles the kernels of an update rule, for parameters of float and of bfloat16.
#define TAUT_CUDA_UPDATE(Rule)     \
  TAUT_CUDA_UPDATE_OF(Rule, float) \
  TAUT_CUDA_UPDATE_OF(Rule, taut::bfloat16)
#define TAUT_CUDA_UPDATE_OF(Rule, E)                                         \
  template void taut::cuda::launch_update<Rule, E>(                          \
      const taut::cuda::Argument<Rule>&, const taut::cuda::Argument<float>&, \
      const taut::cuda::UpdatePointers<E, Rule::states>*, int, taut::cuda::Stream);
