#pragma once
// The launchers of max pooling, as both the tensors' side and the kernels' side see them. Images have the
// channels last. E is float or bfloat16.

#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// How windows lie along an axis of images.
struct WindowAxis {
  std::int64_t image, windows;  ///< how many pixels and how many windows there are
  std::int64_t kernel, stride, padding, dilation;
};

/// Images [n, rows, columns, channels] and the windows over them.
struct PoolWindows {
  std::int64_t n, channels;
  WindowAxis rows, columns;

  std::int64_t pixels() const { return n * rows.image * columns.image; }
  std::int64_t windows() const { return n * rows.windows * columns.windows; }
};

/// Writes the largest element of each window.
template <class E> void launch_max_pool2d(const PoolWindows& pool, const E* x, E* y, Stream stream);

/// Writes the element of v at the place where the largest of x is, of each window.
template <class E>
void launch_max_pool2d_pick(const PoolWindows& pool, const E* v, const E* x, E* y, Stream stream);

/// Adds each window's g at the place of the largest of x, to zeros. `places` is for one of each element of g:
/// the pixel of the image where the largest is. Throws `Error` for images of 2³¹ pixels or more, padding
/// included.
template <class E>
void launch_max_pool2d_gradient(const PoolWindows& pool, const E* g, const E* x, std::int32_t* places, E* to,
                                Stream stream);

}  // namespace taut::cuda
