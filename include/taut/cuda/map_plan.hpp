#pragma once
// How the operands of an elementwise operator lie over its result: a plain struct that launchers take.

#include <algorithm>
#include <cstdint>

#include "../core/shape.hpp"
#include "device.hpp"
#include "layout.hpp"

namespace taut::cuda {

/// The most operands that an elementwise operator can have, its second derivatives' included.
inline constexpr int max_operands = 8;

/// The axes of the result in the order in which it lies in memory, innermost first. Axes along which all
/// operands advance alike are merged into one.
struct MapPlan {
  int rank = 1;
  std::int64_t extents[max_rank] = {1};
  std::int64_t strides[max_rank][max_operands] = {};  ///< in elements; 0 along a repeated axis
  std::int64_t offsets[max_operands] = {};            ///< where each operand begins
  std::int64_t first = 0;                             ///< where the result begins

  std::int64_t size() const {
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extents[d];
    return n;
  }

  /// Adds an axis outside of the others.
  void add_axis(std::int64_t extent, const std::int64_t* stride, int operands) {
    if (extent == 1) return;
    const int last = rank - 1;
    if (extents[last] != 1) {
      bool merges = true;
      for (int k = 0; k < operands; ++k) merges = merges && stride[k] == strides[last][k] * extents[last];
      if (merges) {
        extents[last] *= extent;
        return;
      }
      ++rank;
    }
    extents[rank - 1] = extent;
    std::copy_n(stride, operands, strides[rank - 1]);
  }

  /// From `begin` on, `count` places of the outermost axis.
  MapPlan part(std::int64_t begin, std::int64_t count) const {
    MapPlan result = *this;
    const int outer = rank - 1;
    result.first += begin * (size() / extents[outer]);
    for (int k = 0; k < max_operands; ++k) result.offsets[k] += begin * strides[outer][k];
    result.extents[outer] = count;
    if (count == 1 && outer > 0) result.rank = outer;
    return result;
  }
};

/// Kernels count in 32 bits: calls launch(part) for parts of a plan that have at most `most` elements.
template <class F>
void for_each_part(const MapPlan& plan, const F& launch, std::int64_t most = std::int64_t{1} << 30) {
  const std::int64_t size = plan.size();
  if (size == 0) return;
  if (size <= most) return launch(plan);
  const std::int64_t outer = plan.extents[plan.rank - 1], inner = size / outer;
  const std::int64_t step = std::max<std::int64_t>(1, most / inner);
  for (std::int64_t begin = 0; begin < outer; begin += step)
    for_each_part(plan.part(begin, std::min(step, outer - begin)), launch, most);
}

/// The axis of a tensor of the given rank that is the i-th innermost in memory.
constexpr int memory_axis(int rank, Layout layout, int i) {
  constexpr int channels_last[] = {1, 3, 2, 0};
  return layout == Layout::dense ? rank - 1 - i : channels_last[i];
}

/// The strides of a tensor's own axes, in elements.
struct Strides {
  std::int64_t of_axis[max_rank] = {};

  constexpr Strides() = default;
  constexpr Strides(const Shape& shape, Layout layout) {
    std::int64_t stride = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      const int axis = memory_axis(shape.rank(), layout, i);
      of_axis[axis] = stride;
      stride *= shape[axis];
    }
  }

  constexpr const std::int64_t& operator[](int axis) const { return of_axis[axis]; }
  constexpr std::int64_t& operator[](int axis) { return of_axis[axis]; }
};

}  // namespace taut::cuda
