#pragma once
// The kernel of optimizers' update rules, and how to compile it for a rule of one's own: a `.cu` file that
// includes this header and says `TAUT_CUDA_UPDATE(MyRule)`, outside of namespaces, has `MyRule` on
// `CudaTensor`. The rule's call operator must be `constexpr`; compile with --expt-relaxed-constexpr.
//
// One launch updates as many parameters as its arguments can name, dozens. A block takes a chunk of one
// parameter's elements, which it finds by the chunks that the parameters before it have; a thread, 16 bytes
// at a time of the parameter, the gradient and each state. Parameters and states are updated in place. The
// rule and the scale may be in the device's memory: the factor of clipping is computed there, and what a
// graph replays takes the rule from there.

#include <algorithm>
#include <utility>

#include "kernel/vector.cuh"
#include "update_launch.hpp"

namespace taut::cuda {
namespace detail {

/// Elements that a block updates.
inline constexpr int update_chunk = 4096;

/// The parameters of one launch; kernels take 4 KiB of arguments, of which the rule has a part.
template <class E, int States> struct UpdateTable {
  static constexpr int capacity = 3072 / static_cast<int>(sizeof(UpdatePointers<E, States>) + 4);
  UpdatePointers<E, States> items[capacity];
  std::uint32_t first_block[capacity + 1];
  int count = 0;
};

/// Updates a vector of an item's elements, from the i-th on.
template <class Rule, class E, int States, std::size_t... K>
__device__ void update_vector(const Rule& rule, float scale, const UpdatePointers<E, States>& item,
                              std::int64_t i, std::index_sequence<K...>) {
  const std::int64_t left = item.size - i;
  Vector<E> parameter = load_vector(item.parameter + i, left);
  const Vector<E> gradient = load_vector(item.gradient + i, left);
  [[maybe_unused]] Vector<E> states[States > 0 ? States : 1] = {load_vector(item.state[K] + i, left)...};
#pragma unroll
  for (int k = 0; k < vector_size<E>; ++k) {
    float p = static_cast<float>(parameter[k]);
    [[maybe_unused]] float s[States > 0 ? States : 1] = {static_cast<float>(states[K][k])...};
    rule(p, scale * static_cast<float>(gradient[k]), s[K]...);
    parameter[k] = static_cast<E>(p);
    ((states[K][k] = static_cast<E>(s[K])), ...);
  }
  store_vector(item.parameter + i, parameter, left);
  (store_vector(item.state[K] + i, states[K], left), ...);
}

template <class Rule, class E, int States>
__global__ void update_kernel(Argument<Rule> rule_argument, Argument<float> scale_argument,
                              const __grid_constant__ UpdateTable<E, States> table) {
  int low = 0, high = table.count;  // the item is the last one that begins at this block or before
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first_block[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle;
  }
  const Rule rule = rule_argument.get();
  const float scale = scale_argument.get();
  const UpdatePointers<E, States>& item = table.items[low];
  const std::int64_t begin = std::int64_t{blockIdx.x - table.first_block[low]} * update_chunk;
  const std::int64_t end = begin + update_chunk < item.size ? begin + update_chunk : item.size;
  for (std::int64_t i = begin + threadIdx.x * vector_size<E>; i < end; i += blockDim.x * vector_size<E>)
    update_vector(rule, scale, item, i, std::make_index_sequence<States>{});
}

}  // namespace detail

template <class Rule, class E>
void launch_update(const Argument<Rule>& rule, const Argument<float>& scale,
                   const UpdatePointers<E, Rule::states>* items, int count, Stream stream) {
  using Table = detail::UpdateTable<E, Rule::states>;
  for (int begin = 0; begin < count; begin += Table::capacity) {
    Table table;
    std::uint32_t blocks = 0;
    for (int k = begin; k < count && k < begin + Table::capacity; ++k) {
      table.items[table.count] = items[k];
      table.first_block[table.count++] = blocks;
      blocks += static_cast<std::uint32_t>((items[k].size + detail::update_chunk - 1) / detail::update_chunk);
    }
    table.first_block[table.count] = blocks;
    if (blocks > 0)
      launch(detail::update_kernel<Rule, E, Rule::states>, blocks, block_threads, 0, stream, rule, scale,
             table);
  }
}

}  // namespace taut::cuda

/// Compiles the kernel of an update rule.
#define TAUT_CUDA_UPDATE(Rule)                                               \
  template void taut::cuda::launch_update<Rule, float>(                      \
      const taut::cuda::Argument<Rule>&, const taut::cuda::Argument<float>&, \
      const taut::cuda::UpdatePointers<float, Rule::states>*, int, taut::cuda::Stream);
