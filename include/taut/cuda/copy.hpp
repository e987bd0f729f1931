#pragma once
// Copies between strided views: what movement operators and changes of layout are (cuda/movement.cu).

#include "map_plan.hpp"

namespace taut::cuda {

/// to[…] = from[…] over a plan of two operands, which are `from` and `to`, for E float, bfloat16 or
/// std::int64_t. No element of `to` may have two places.
template <class E> void launch_copy(const MapPlan& plan, const E* from, E* to, Stream stream);

/// Copies all elements of a tensor of the given shape; the axes are added in the order in which `layout` has
/// them in memory.
template <class E>
void copy_strided(const Shape& shape, Layout layout, const E* from, const Strides& from_strides, E* to,
                  const Strides& to_strides) {
  MapPlan plan;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = memory_axis(shape.rank(), layout, i);
    const std::int64_t strides[] = {from_strides[axis], to_strides[axis]};
    plan.add_axis(shape[axis], strides, 2);
  }
  launch_copy(plan, from, to, current_stream());
}

}  // namespace taut::cuda
