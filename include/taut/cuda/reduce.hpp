#pragma once
// Reductions on the device over any axes. Sums are accumulated in float, in an order that depends on the
// shape alone.

#include "../op/reduce.hpp"
#include "elementwise.hpp"
#include "movement.hpp"
#include "reduce_launch.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

using ReduceFlags = std::array<bool, max_rank>;

/// The plan that reduces the flagged axes of a tensor as it lies in memory.
inline ReducePlan reduce_plan(const Shape& shape, Layout layout, const ReduceFlags& reduced) {
  const Strides strides(shape, layout);
  const auto flagged = [&](int axis) { return reduced[static_cast<std::size_t>(axis)]; };
  ReducePlan plan;
  for (int axis = shape.rank() - 1; axis >= 0; --axis)
    if (!flagged(axis)) plan.kept.add_axis(shape[axis], &strides[axis], 1);
  for (int i = 0; i < shape.rank(); ++i)
    if (const int axis = memory_axis(shape.rank(), layout, i); flagged(axis))
      plan.reduced.add_axis(shape[axis], &strides[axis], 1);
  return plan;
}

/// Whether neighbouring threads can read neighbouring elements: the elements of one result, or of several.
inline bool is_coalesced(const ReducePlan& plan) {
  return plan.kept.strides[0][0] == 1 || plan.reduced.strides[0][0] == 1 ||
         plan.kept.size() * plan.reduced.size() <= 1;
}

/// Runs a launcher of reductions over the flagged axes, which gives a tensor of the shape `to`.
template <class Result, class E, class Launcher>
Result reduce(const BasicCudaTensor<E>& x, const ReduceFlags& reduced, const Shape& to, Launcher launcher) {
  BasicCudaTensor<E> source = x;
  ReducePlan plan = reduce_plan(x.shape(), x.layout(), reduced);
  if (!is_coalesced(plan)) {
    source = x.dense();
    plan = reduce_plan(x.shape(), Layout::dense, reduced);
  }
  auto out = Result::uninitialized(to);
  if (to.size() > 0) launcher(plan, source.data(), out.mutable_data(), current_stream());
  return out;
}

}  // namespace cuda

template <cuda::Computed E> BasicCudaTensor<E> eval(const op::Sum& op, const BasicCudaTensor<E>& x) {
  return cuda::reduce<BasicCudaTensor<E>>(x, reduced_axes(op.name, op.axes, x.shape()), op.shape(x.shape()),
                                          cuda::launch_sum<E>);
}

template <cuda::Computed E, bool Largest>
BasicCudaTensor<E> eval(const op::Extreme<Largest>& op, const BasicCudaTensor<E>& x) {
  return cuda::reduce<BasicCudaTensor<E>>(x, reduced_axes(op.name, op.axes, x.shape()), op.shape(x.shape()),
                                          Largest ? cuda::launch_max<E> : cuda::launch_min<E>);
}

template <cuda::Computed E> BasicCudaTensor<E> eval(const op::SumTo& op, const BasicCudaTensor<E>& x) {
  const Shape shape = op.shape(x.shape());
  if (shape == x.shape()) return x;
  cuda::ReduceFlags reduced{};
  const int added = x.shape().rank() - shape.rank();
  for (int i = 0; i < x.shape().rank(); ++i)
    reduced[static_cast<std::size_t>(i)] = i < added || (shape[i - added] == 1 && x.shape()[i] != 1);
  return cuda::reduce<BasicCudaTensor<E>>(x, reduced, shape, cuda::launch_sum<E>);
}

template <cuda::Computed E>
BasicCudaTensor<std::int64_t> eval(const op::Argmax& op, const BasicCudaTensor<E>& x) {
  const Shape shape = op.shape(x.shape());
  cuda::ReduceFlags reduced{};
  reduced[static_cast<std::size_t>(normalize_axis(op.name, op.axis, x.shape()))] = true;
  return cuda::reduce<BasicCudaTensor<std::int64_t>>(x, reduced, shape, cuda::launch_argmax<E>);
}

}  // namespace taut
