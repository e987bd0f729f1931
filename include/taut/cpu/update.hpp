#pragma once
// Update rules of optimizers on dense arrays: all parameters of a model in one pass.

#include <algorithm>
#include <span>
#include <vector>

#include "../op/unary.hpp"
#include "../optim/update.hpp"
#include "array.hpp"
#include "reduce.hpp"
#include "simd.hpp"

namespace taut {

namespace cpu {

/// The array's elements for writing in place, in row-major order; if its buffer is shared or lies otherwise,
/// of a fresh copy that takes its place.
template <class E> E* writable(BasicCpuArray<E>& x) {
  if (!x.unique() || x.layout() != Layout::dense) x = BasicCpuArray<E>::from_host(x.span(), x.shape());
  return x.mutable_data();
}

/// A stretch of one item's elements.
struct Block {
  std::size_t item;
  std::int64_t begin, end;
  std::int64_t before;  ///< the elements of all blocks that precede it
};

/// All items' elements in blocks that do not depend on the number of threads, as sums over each must not.
template <class Item> std::vector<Block> split_into_blocks(std::span<const Item> items) {
  constexpr std::int64_t most = default_grain / 8;
  std::vector<Block> blocks;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto size = items[i].parameter->shape().size();
    for (std::int64_t begin = 0; begin < size; begin += most) {
      blocks.push_back({i, begin, std::min(size, begin + most), before});
      before += blocks.back().end - begin;
    }
  }
  return blocks;
}

/// The elements of all blocks.
inline std::int64_t element_count(const std::vector<Block>& blocks) {
  return blocks.empty() ? 0 : blocks.back().before + blocks.back().end - blocks.back().begin;
}

/// The first block of the part `part` of `parts`, of which each has an equal share of the elements, however
/// few tensors they are of.
inline std::size_t first_block(const std::vector<Block>& blocks, std::int64_t part, std::int64_t parts) {
  const auto before = element_count(blocks) * part / parts;
  return static_cast<std::size_t>(std::ranges::lower_bound(blocks, before, {}, &Block::before) -
                                  blocks.begin());
}

/// Calls body(index, block) for all blocks, on several threads where that pays.
template <class F> void for_each_block(const std::vector<Block>& blocks, const F& body) {
  const auto parts = std::clamp<std::int64_t>(element_count(blocks) / default_grain, 1, threads());
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto stop = first_block(blocks, end, parts);
    for (auto k = first_block(blocks, begin, parts); k < stop; ++k) body(k, blocks[k]);
  });
}

/// rule(p[0 …], scale g[0 …], s₀[0 …], …) for one S, a pack or a single element.
template <class S, class Rule, class E, std::size_t... K>
void update_one(const Rule& rule, E scale, E* p, const E* g, const std::array<E*, sizeof...(K)>& s,
                std::index_sequence<K...>) {
  S parameter = load_as<S>(p);
  std::array<S, sizeof...(K)> states{load_as<S>(static_cast<const E*>(s[K]))...};
  rule(parameter, S(scale) * load_as<S>(g), states[K]...);
  store_as<S>(p, parameter);
  (store_as<S>(s[K], states[K]), ...);
}

/// The same for n elements.
template <class Rule, class E, std::size_t N>
void update_contiguous(const Rule& rule, std::int64_t n, E scale, E* p, const E* g, std::array<E*, N> s) {
  constexpr auto sequence = std::make_index_sequence<N>{};
  const auto step = [&]<class S>(S, std::int64_t width) {
    update_one<S>(rule, scale, p, g, s, sequence);
    p += width, g += width;
    for (auto& state : s) state += width;
  };
  std::int64_t i = 0;
  for (; i + pack_size<E> <= n; i += pack_size<E>) step(Pack<E>(E(0)), pack_size<E>);
  for (; i < n; ++i) step(E(0), 1);
}

}  // namespace cpu

/// Σ g² over all gradients, in double.
template <class E, int States>
double sum_of_squares(std::span<const optim::UpdateItem<BasicCpuArray<E>, States>> items) {
  const auto blocks = cpu::split_into_blocks(items);
  std::vector<double> partial(blocks.size());
  cpu::for_each_block(blocks, [&](std::size_t k, const cpu::Block& block) {
    const E* g = items[block.item].gradient->data();
    partial[k] = cpu::reduce_row<cpu::SumReducer>(block.end - block.begin, g + block.begin, op::Square{});
  });
  double total = 0;
  for (const double value : partial) total += value;
  return total;
}

/// Applies an update rule in place to all parameters and states, with the gradients multiplied by `scale`.
template <class Rule, class E, int States>
void apply_update(const Rule& rule, double scale,
                  std::span<const optim::UpdateItem<BasicCpuArray<E>, States>> items) {
  struct Pointers {
    E* parameter;
    const E* gradient;
    std::array<E*, static_cast<std::size_t>(States)> state;
  };
  std::vector<Pointers> pointers;
  for (const auto& item : items) {
    Pointers at{cpu::writable(*item.parameter), item.gradient->data(), {}};
    for (std::size_t k = 0; k < at.state.size(); ++k) at.state[k] = cpu::writable(*item.state[k]);
    pointers.push_back(at);
  }
  const auto blocks = cpu::split_into_blocks(items);
  cpu::for_each_block(blocks, [&](std::size_t, const cpu::Block& block) {
    Pointers at = pointers[block.item];
    for (auto& state : at.state) state += block.begin;
    cpu::update_contiguous(rule, block.end - block.begin, static_cast<E>(scale), at.parameter + block.begin,
                           at.gradient + block.begin, at.state);
  });
}

}  // namespace taut
