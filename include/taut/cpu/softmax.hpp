#pragma once
// Softmax and its logarithm on dense arrays: one pass for the maximum, one for the exponentials, one to
// normalise, row by row while the row is in cache.

#include <cmath>

#include "../op/softmax.hpp"
#include "reduce.hpp"

namespace taut {

namespace cpu {

/// Calls kernel(x, n, y) for each row along `axis`; rows that are not contiguous are brought together first.
template <class E, class Kernel>
BasicCpuArray<E> along_axis(const BasicCpuArray<E>& x, int axis, const Kernel& kernel) {
  if (axis != x.shape().rank() - 1) {
    const op::Permute order = [&] {
      Axes axes;
      for (int i = 0; i < x.shape().rank(); ++i) axes.push_back(i);
      std::swap(axes.items[axis], axes.items[x.shape().rank() - 1]);
      return op::Permute{axes};
    }();
    const auto moved = eval(order, x);
    return eval(order, along_axis(moved, x.shape().rank() - 1, kernel));
  }
  auto y = BasicCpuArray<E>::uninitialized(x.shape());
  const auto n = x.shape()[-1];
  if (x.shape().size() == 0) return y;
  const E* const from = x.data();
  E* const to = y.mutable_data();
  for_each_row(x.shape().size() / n, n, [&](std::int64_t row) { kernel(from + row * n, n, to + row * n); });
  return y;
}

/// exp(x - shift)
template <class E> struct ExpShifted {
  E shift;
  template <class S> S operator()(S value) const {
    using std::exp;
    return exp(value - S(shift));
  }
};

/// y = exp(x - max x); returns Σ y. Rows of any length go through packs.
template <class E> double exp_shifted(const E* x, std::int64_t n, E largest, E* y) {
  map_contiguous(ExpShifted<E>{largest}, n, y, &x, std::index_sequence<0>{});
  return static_cast<double>(reduce_row<SumReducer>(n, y));
}

}  // namespace cpu

template <class E> BasicCpuArray<E> eval(const op::Softmax& op, const BasicCpuArray<E>& x) {
  op.shape(x.shape());
  return cpu::along_axis(x, normalize_axis(op.name, op.axis, x.shape()),
                         [](const E* from, std::int64_t n, E* to) {
                           const E largest = cpu::reduce_row<cpu::ExtremeReducer<true>>(n, from);
                           const E scale = static_cast<E>(1 / cpu::exp_shifted(from, n, largest, to));
                           for (std::int64_t i = 0; i < n; ++i) to[i] *= scale;
                         });
}

template <class E> BasicCpuArray<E> eval(const op::LogSoftmax& op, const BasicCpuArray<E>& x) {
  op.shape(x.shape());
  return cpu::along_axis(x, normalize_axis(op.name, op.axis, x.shape()),
                         [](const E* from, std::int64_t n, E* to) {
                           const E largest = cpu::reduce_row<cpu::ExtremeReducer<true>>(n, from);
                           const E log_sum = static_cast<E>(std::log(cpu::exp_shifted(from, n, largest, to)));
                           for (std::int64_t i = 0; i < n; ++i) to[i] = (from[i] - largest) - log_sum;
                         });
}

}  // namespace taut
