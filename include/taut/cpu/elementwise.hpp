#pragma once
// One kernel for all elementwise operators: the operator's scalar function over SIMD packs, with
// broadcasting.
//
// The output is walked in rows of its innermost (coalesced) axis. An operand that is constant along the row
// is spread into a tile once, so the inner loop reads every operand contiguously and there is one inner loop
// an operator.

#include <algorithm>

#include "../op/operator.hpp"
#include "array.hpp"
#include "simd.hpp"

namespace taut {

namespace cpu {

/// How the operands of an elementwise operator lie over the output: adjacent axes along which all operands
/// advance alike are merged into one.
template <int N> struct BroadcastPlan {
  int rank = 1;
  std::int64_t extents[max_rank] = {1};    // innermost first
  std::int64_t strides[max_rank][N] = {};  // in elements; 0 along a repeated axis

  BroadcastPlan(const Shape& out, const std::array<const Shape*, N>& in) {
    bool first = true;
    std::int64_t dense[N];
    std::fill_n(dense, N, 1);
    for (int axis = -1; axis >= -out.rank(); --axis) {
      const auto extent = out[axis];
      if (extent == 1) continue;
      std::int64_t stride[N];
      bool merges = !first;
      for (int i = 0; i < N; ++i) {
        const auto own = -axis <= in[i]->rank() ? (*in[i])[axis] : 1;
        stride[i] = own == 1 ? 0 : dense[i];
        dense[i] *= own;
        merges = merges && stride[i] == strides[rank - 1][i] * extents[rank - 1];
      }
      if (merges) {
        extents[rank - 1] *= extent;
        continue;
      }
      rank += first ? 0 : 1;
      first = false;
      extents[rank - 1] = extent;
      std::copy_n(stride, N, strides[rank - 1]);
    }
  }
};

/// Elements of a tile into which an operand that does not advance along a row is spread.
inline constexpr std::int64_t tile_size = 256;

/// to[i] = op(from₀[i], from₁[i], …) for i < n.
template <class Op, class E, std::size_t N>
void map_contiguous(const Op& op, std::int64_t n, E* to, const std::array<const E*, N>& from) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    std::int64_t i = 0;
    if constexpr (pack_size < E >> 1) {
      for (; i + pack_size<E> <= n; i += pack_size<E>) store<E>(to + i, op(load<E>(from[K] + i)...));
      if (i == n) return;
      // The tail goes through the same pack code, so that an element's value does not depend on its place.
      E tail[N + 1][pack_size<E>];
      for (std::size_t k = 0; k < N; ++k) {
        for (std::int64_t j = 0; j < pack_size<E>; ++j) tail[k][j] = from[k][std::min(i + j, n - 1)];
      }
      store<E>(tail[N], op(load<E>(tail[K])...));
      for (std::int64_t j = 0; i + j < n; ++j) to[i + j] = tail[N][j];
    } else {
      for (; i < n; ++i) to[i] = op(from[K][i]...);
    }
  }
  (std::make_index_sequence<N>{});
}

/// Rows `begin` to `end` of the output, each of `plan.extents[0]` elements.
template <class Op, class E, std::size_t N>
void map_rows(const Op& op, const BroadcastPlan<static_cast<int>(N)>& plan, std::int64_t begin,
              std::int64_t end, E* out, const std::array<const E*, N>& in) {
  const auto width = plan.extents[0];
  E tiles[N][tile_size];
  for (std::int64_t row = begin; row < end; ++row) {
    std::array<const E*, N> from = in;
    std::int64_t rest = row;
    for (int d = 1; d < plan.rank; ++d) {
      const auto at = rest % plan.extents[d];
      rest /= plan.extents[d];
      for (std::size_t k = 0; k < N; ++k) from[k] += at * plan.strides[d][k];
    }
    bool spread = false;
    for (std::size_t k = 0; k < N; ++k) {
      if (plan.strides[0][k] != 0 || width == 1) continue;
      std::fill_n(tiles[k], std::min(width, tile_size), *from[k]);
      spread = true;
    }
    if (!spread) {
      map_contiguous(op, width, out + row * width, from);
      continue;
    }
    for (std::int64_t column = 0; column < width; column += tile_size) {
      std::array<const E*, N> part;
      for (std::size_t k = 0; k < N; ++k) part[k] = plan.strides[0][k] == 0 ? tiles[k] : from[k] + column;
      map_contiguous(op, std::min(tile_size, width - column), out + row * width + column, part);
    }
  }
}

/// Runs an elementwise operator over its broadcast operands, on several threads where that pays.
template <class Op, class E, std::size_t N>
void elementwise(const Op& op, const Shape& shape, E* out, std::array<const E*, N> in,
                 const std::array<const Shape*, N>& shapes) {
  const std::int64_t n = shape.size();
  if (n == 0) return;
  const BroadcastPlan<static_cast<int>(N)> plan(shape, shapes);
  if (plan.rank == 1 && std::all_of(plan.strides[0], plan.strides[0] + N, [](auto s) { return s == 1; })) {
    parallel_for(n, default_grain, [&](std::int64_t begin, std::int64_t end) {
      auto from = in;
      for (auto& pointer : from) pointer += begin;
      map_contiguous(op, end - begin, out + begin, from);
    });
    return;
  }
  if (plan.rank == 1) {  // one row: split along it
    parallel_for(n, default_grain, [&](std::int64_t begin, std::int64_t end) {
      auto part = plan;
      part.extents[0] = end - begin;
      auto from = in;
      for (std::size_t k = 0; k < N; ++k) from[k] += begin * plan.strides[0][k];
      map_rows(op, part, 0, 1, out + begin, from);
    });
    return;
  }
  const auto width = plan.extents[0];
  parallel_for(n / width, std::max<std::int64_t>(1, default_grain / width),
               [&](std::int64_t begin, std::int64_t end) { map_rows(op, plan, begin, end, out, in); });
}

/// The buffer for a result: that of the first operand which is passed as an rvalue, has the result's shape
/// and shares its buffer with nobody, or else a fresh one.
template <class E, class... Xs> BasicCpuArray<E> reuse_or_allocate(const Shape& shape, Xs&&... xs) {
  BasicCpuArray<E> result;
  bool found = false;
  const auto offer = [&]<class X>(X&& x) {
    if constexpr (!std::is_lvalue_reference_v<X> && !std::is_const_v<std::remove_reference_t<X>>)
      if (!found && x.shape() == shape && x.unique()) {
        result = std::move(x);
        found = true;
      }
  };
  (offer(std::forward<Xs>(xs)), ...);
  if (!found) result = BasicCpuArray<E>::uninitialized(shape);
  return result;
}

}  // namespace cpu

/// The kernel of every elementwise operator.
template <ElementwiseOp Op, class X, class... Xs>
requires cpu::SameArrays<X, Xs...>
auto eval(const Op& op, X&& x, Xs&&... xs) -> std::remove_cvref_t<X> {
  using E = typename std::remove_cvref_t<X>::Element;
  const Shape shape = infer_shape(op, x.shape(), xs.shape()...);
  const std::array<const E*, 1 + sizeof...(Xs)> from{x.data(), xs.data()...};
  const std::array<Shape, 1 + sizeof...(Xs)> shapes{x.shape(), xs.shape()...};
  auto result = cpu::reuse_or_allocate<E>(shape, std::forward<X>(x), std::forward<Xs>(xs)...);
  std::array<const Shape*, 1 + sizeof...(Xs)> shape_pointers;
  for (std::size_t k = 0; k < shapes.size(); ++k) shape_pointers[k] = &shapes[k];
  cpu::elementwise(op, shape, result.mutable_data(), from, shape_pointers);
  return result;
}

}  // namespace taut
