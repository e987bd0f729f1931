#pragma once
// One kernel for all elementwise operators: the operator's scalar function over SIMD packs, with
// broadcasting.
//
// The output is walked in rows of its innermost (coalesced) axis. An operand that is constant along the row
// is spread into a tile once, so the inner loop reads every operand contiguously. Only that loop depends on
// the operator; what surrounds it is compiled once an element type.

#include <algorithm>

#include "array.hpp"
#include "simd.hpp"

namespace taut {

namespace cpu {

/// The most operands that an elementwise operator can have.
inline constexpr int max_operands = 8;

/// Elements of a tile into which an operand that does not advance along a row is spread.
inline constexpr std::int64_t tile_size = 256;

/// to[i] = op(from₀[i], from₁[i], …) for i < n.
template <class Op, class E, std::size_t... K>
void map_contiguous(const Op& op, std::int64_t n, E* to, const E* const* from, std::index_sequence<K...>) {
  std::int64_t i = 0;
  if constexpr (pack_size < E >> 1) {
    for (; i + pack_size<E> <= n; i += pack_size<E>) store<E>(to + i, op(load<E>(from[K] + i)...));
    if (i == n) return;
    // The tail goes through the same pack code, so that an element's value does not depend on its place.
    E tail[sizeof...(K) + 1][pack_size<E>];
    for (std::int64_t j = 0; j < pack_size<E>; ++j) ((tail[K][j] = from[K][std::min(i + j, n - 1)]), ...);
    store<E>(tail[sizeof...(K)], op(load<E>(tail[K])...));
    std::copy_n(tail[sizeof...(K)], n - i, to + i);
  } else {
    for (; i < n; ++i) to[i] = op(from[K][i]...);
  }
}

/// An elementwise operator with its type erased: its name, for errors, and its loop over contiguous elements.
template <class E> struct ErasedOperator {
  std::string_view name;
  const void* op;
  void (*map)(const void* op, std::int64_t n, E* to, const E* const* from);

  template <class Op, std::size_t N> static ErasedOperator of(const Op& op) {
    static_assert(N <= max_operands, "elementwise operators have at most 8 operands");
    return {Op::name, &op, [](const void* self, std::int64_t n, E* to, const E* const* from) {
              map_contiguous(*static_cast<const Op*>(self), n, to, from, std::make_index_sequence<N>{});
            }};
  }
};

/// An operand of an elementwise operator; `owner` is set if it was passed as an rvalue.
template <class E> struct ElementwiseOperand {
  const BasicCpuArray<E>* array;
  BasicCpuArray<E>* owner;
};

/// The layout in which operands of one shape meet.
template <class E> Layout common_layout(const ElementwiseOperand<E>* operands, int count) {
  Layout layout = Layout::dense;
  for (int k = 0; k < count; ++k) layout = common_layout(layout, operands[k].array->layout());
  return layout;
}

/// How operands lie over the output of an elementwise operator: adjacent axes along which all of them advance
/// alike are merged into one.
struct BroadcastPlan {
  int rank = 1;
  std::int64_t extents[max_rank];                // innermost first
  std::int64_t strides[max_rank][max_operands];  // in elements; 0 along a repeated axis

  BroadcastPlan() = default;

  BroadcastPlan(const Shape& out, const Shape* const* in, int operands) {
    extents[0] = 1;
    std::fill_n(strides[0], operands, 0);
    bool first = true;
    std::int64_t dense[max_operands];
    std::fill_n(dense, operands, 1);
    for (int axis = -1; axis >= -out.rank(); --axis) {
      const auto extent = out[axis];
      if (extent == 1) continue;
      std::int64_t stride[max_operands];
      bool merges = !first;
      for (int i = 0; i < operands; ++i) {
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
      std::copy_n(stride, operands, strides[rank - 1]);
    }
  }
};

/// Rows `begin` to `end` of the output, and of each row the elements `first` to `last`.
template <class E>
void map_rows(const ErasedOperator<E>& op, const BroadcastPlan& plan, int operands, std::int64_t begin,
              std::int64_t end, std::int64_t first, std::int64_t last, E* out, const E* const* in) {
  E tiles[max_operands][tile_size];
  for (std::int64_t row = begin; row < end; ++row) {
    const E* rows[max_operands];
    std::int64_t step = last - first;
    for (int k = 0; k < operands; ++k) {
      rows[k] = in[k];
      std::int64_t rest = row;
      for (int d = 1; d < plan.rank; ++d) {
        rows[k] += rest % plan.extents[d] * plan.strides[d][k];
        rest /= plan.extents[d];
      }
      if (plan.strides[0][k] != 0) continue;
      step = std::min(step, tile_size);
      std::fill_n(tiles[k], std::min(last - first, tile_size), *rows[k]);
    }
    for (std::int64_t i = first; i < last; i += step) {
      const E* from[max_operands];
      for (int k = 0; k < operands; ++k) from[k] = plan.strides[0][k] != 0 ? rows[k] + i : tiles[k];
      op.map(op.op, std::min(step, last - i), out + row * plan.extents[0] + i, from);
    }
  }
}

/// Runs an elementwise operator over operands of the output's shape.
template <class E>
void map_dense(const ErasedOperator<E>& op, int operands, std::int64_t n, E* out, const E* const* in) {
  parallel_for(n, default_grain, [&](std::int64_t begin, std::int64_t end) {
    const E* from[max_operands];
    for (int k = 0; k < operands; ++k) from[k] = in[k] + begin;
    op.map(op.op, end - begin, out + begin, from);
  });
}

/// Runs an elementwise operator over operands that broadcast to the output's shape.
template <class E>
void map_broadcast(const ErasedOperator<E>& op, const BroadcastPlan& plan, int operands, std::int64_t n,
                   E* out, const E* const* in) {
  const auto width = plan.extents[0];
  if (plan.rank == 1)
    parallel_for(n, default_grain, [&](std::int64_t begin, std::int64_t end) {
      map_rows(op, plan, operands, 0, 1, begin, end, out, in);
    });
  else
    parallel_for(n / width, std::max<std::int64_t>(1, default_grain / width),
                 [&](std::int64_t begin, std::int64_t end) {
                   map_rows(op, plan, operands, begin, end, 0, width, out, in);
                 });
}

/// The result of an elementwise operator, computed on several threads where that pays. It takes over the
/// buffer of an operand that was passed as an rvalue, has the result's shape and shares its buffer with
/// nobody.
template <class E>
BasicCpuArray<E> elementwise(const ErasedOperator<E>& op, const ElementwiseOperand<E>* operands, int count) {
  Shape shape = operands[0].array->shape();
  const Shape* shapes[max_operands] = {};
  const E* in[max_operands];
  bool dense = true;
  for (int k = 0; k < count; ++k) {
    shapes[k] = &operands[k].array->shape();
    dense = dense && *shapes[k] == shape;
  }
  if (!dense)
    for (int k = 1; k < count; ++k) shape = broadcast_shapes(op.name, shape, *shapes[k]);
  const Layout layout = dense ? common_layout(operands, count) : Layout::dense;
  for (int k = 0; k < count; ++k) in[k] = operands[k].array->data(layout);
  BasicCpuArray<E>* reusable = nullptr;
  for (int k = 0; k < count && !reusable; ++k)
    if (operands[k].owner && operands[k].owner->unique() && operands[k].owner->layout() == layout &&
        *shapes[k] == shape)
      reusable = operands[k].owner;
  // The plan is made before the result, which may empty an operand and its shape.
  const BroadcastPlan plan = dense ? BroadcastPlan() : BroadcastPlan(shape, shapes, count);
  auto result = reusable ? std::move(*reusable) : BasicCpuArray<E>::uninitialized(shape, layout);
  const auto n = shape.size();
  if (n == 0) return result;
  if (dense)
    map_dense(op, count, n, result.mutable_data(), in);
  else
    map_broadcast(op, plan, count, n, result.mutable_data(), in);
  return result;
}

template <class E, class X> ElementwiseOperand<E> elementwise_operand(X&& x) {
  if constexpr (std::is_lvalue_reference_v<X> || std::is_const_v<std::remove_reference_t<X>>)
    return {&x, nullptr};
  else
    return {&x, &x};
}

}  // namespace cpu

/// The kernel of every elementwise operator.
template <ElementwiseOp Op, class X, class... Xs>
requires cpu::SameArrays<X, Xs...>
auto eval(const Op& op, X&& x, Xs&&... xs) -> std::remove_cvref_t<X> {
  using E = typename std::remove_cvref_t<X>::Element;
  const cpu::ElementwiseOperand<E> operands[] = {cpu::elementwise_operand<E>(std::forward<X>(x)),
                                                 cpu::elementwise_operand<E>(std::forward<Xs>(xs))...};
  return cpu::elementwise<E>(cpu::ErasedOperator<E>::template of<Op, 1 + sizeof...(Xs)>(op), operands,
                             1 + sizeof...(Xs));
}

}  // namespace taut
