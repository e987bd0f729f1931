#pragma once
// How images lie in the device's memory. Operators on images see [n, c, h, w]; convolutions, pooling and
// batch normalisation give results whose channels lie together, elementwise operators keep the layout, and
// whatever needs row-major elements asks for them (`dense()`).

#include <cstdint>

#include "../core/shape.hpp"

namespace taut::cuda {

enum class Layout : std::uint8_t {
  dense,         ///< row-major, the only one of tensors that are not of rank 4
  channels_last  ///< [n, h, w, c]
};

/// The layout in which images of two layouts meet: the one that is not dense.
constexpr Layout common_layout(Layout a, Layout b) { return a == Layout::dense ? b : a; }

/// Whether two layouts put the elements of a tensor of the given shape into the same order.
constexpr bool same_order(const Shape& shape, Layout a, Layout b) {
  return a == b || shape.size() == 0 || shape[1] == 1 || shape[2] * shape[3] == 1;
}

}  // namespace taut::cuda
