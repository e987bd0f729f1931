#pragma once
// The launchers of reductions (cuda/reduce.cu).

#include "map_plan.hpp"

namespace taut::cuda {

/// How a tensor is reduced: the axes that stay, in the order in which the result lies in memory, and those
/// that are reduced. Both plans have one operand, the tensor.
struct ReducePlan {
  MapPlan kept, reduced;
};

/// to[i] = Σ, the largest or the smallest of the elements that belong to i, NaN being larger and smaller than
/// all others; for E float or bfloat16. There may be no elements; their sum is 0.
template <class E> void launch_sum(const ReducePlan& plan, const E* from, E* to, Stream stream);
template <class E> void launch_max(const ReducePlan& plan, const E* from, E* to, Stream stream);
template <class E> void launch_min(const ReducePlan& plan, const E* from, E* to, Stream stream);

/// to[i] = the position of the first largest of the elements that belong to i, NaN being the largest.
template <class E> void launch_argmax(const ReducePlan& plan, const E* from, std::int64_t* to, Stream stream);

}  // namespace taut::cuda
