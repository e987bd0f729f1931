// Max pooling over images with the channels last. A thread takes neighbouring channels of a window
// (columns.cuh) and reads the window once. The gradient is gathered, so that no two threads add to one
// element: first the place of each window's largest element is written down, then each pixel adds up the
// windows that it is the largest of, in row-major order. All of the outputs is overwritten.

#include "taut/cuda/max_pool2d_launch.hpp"

#include <algorithm>
#include <limits>

#include "taut/cuda/kernel/columns.cuh"
#include "taut/cuda/kernel/divide.cuh"

namespace taut::cuda {

namespace {

/// A window, or a pixel: its image, row and column.
struct Place {
  std::int64_t image, row, column;

  __device__ Place(std::int64_t index, std::int64_t rows, std::int64_t columns) {
    const std::int64_t line = index / columns;
    image = line / rows;
    row = line - image * rows;
    column = index - line * columns;
  }
};

/// The largest elements of a window in neighbouring channels, and at which pixels of the image they are.
template <int width> struct Maxima {
  float value[width];
  std::int64_t pixel[width];
};

template <int width, class E>
__device__ Maxima<width> maxima_of(const PoolWindows& pool, const Place& window, std::int64_t channel,
                                   const E* x) {
  const WindowAxis &rows = pool.rows, &columns = pool.columns;
  const E* const image = x + window.image * rows.image * columns.image * pool.channels + channel;
  Maxima<width> maxima;
  bool first = true;
  for (std::int64_t k = 0; k < rows.kernel; ++k) {
    const std::int64_t row = window.row * rows.stride + k * rows.dilation - rows.padding;
    if (row < 0 || row >= rows.image) continue;
    for (std::int64_t l = 0; l < columns.kernel; ++l) {
      const std::int64_t column = window.column * columns.stride + l * columns.dilation - columns.padding;
      if (column < 0 || column >= columns.image) continue;
      const std::int64_t pixel = row * columns.image + column;
      const auto values = load_vector<E, width>(image + pixel * pool.channels);
      for (int i = 0; i < width; ++i) {
        const float value = float(values[i]);
        const bool better = first || value > maxima.value[i] || value != value;  // NaN wins
        maxima.value[i] = better ? value : maxima.value[i];
        maxima.pixel[i] = better ? pixel : maxima.pixel[i];
      }
      first = false;
    }
  }
  return maxima;
}

/// Calls visit(maxima, image, channel, at) for each window of a thread, whose result is at offset `at`.
template <int width, class E, class Visit>
__device__ void for_each_window(const PoolWindows& pool, const E* x, std::int64_t windows,
                                const Visit& visit) {
  const ThreadRows own = thread_rows(windows, pool.channels, width);
  for (std::int64_t k = 0; k < own.count; ++k) {
    const std::int64_t at = own.at + k * own.step;
    const Place window((at - own.column) / pool.channels, pool.rows.windows, pool.columns.windows);
    visit(maxima_of<width>(pool, window, own.column, x), window.image, own.column, at);
  }
}

template <int width, class E>
__global__ void pool_largest(PoolWindows pool, std::int64_t windows, const E* x, E* y) {
  for_each_window<width>(pool, x, windows,
                         [&](const Maxima<width>& maxima, std::int64_t, std::int64_t, std::int64_t at) {
                           Vector<E, width> values;
                           for (int i = 0; i < width; ++i) values[i] = E(maxima.value[i]);
                           store_vector(y + at, values);
                         });
}

template <int width, class E>
__global__ void pick_at_largest(PoolWindows pool, std::int64_t windows, const E* v, const E* x, E* y) {
  const std::int64_t pixels = pool.rows.image * pool.columns.image;
  for_each_window<width>(
      pool, x, windows,
      [&](const Maxima<width>& maxima, std::int64_t image, std::int64_t channel, std::int64_t at) {
        for (int i = 0; i < width; ++i)
          y[at + i] = v[(image * pixels + maxima.pixel[i]) * pool.channels + channel + i];
      });
}

template <int width, class E>
__global__ void find_largest(PoolWindows pool, std::int64_t windows, const E* x, std::int32_t* places) {
  for_each_window<width>(pool, x, windows,
                         [&](const Maxima<width>& maxima, std::int64_t, std::int64_t, std::int64_t at) {
                           Vector<std::int32_t, width> pixels;
                           for (int i = 0; i < width; ++i)
                             pixels[i] = static_cast<std::int32_t>(maxima.pixel[i]);
                           store_vector(places + at, pixels);
                         });
}

/// Divides what is below 2³¹ by the stride along an axis.
Divider stride_divider(const WindowAxis& axis) {
  constexpr auto most = std::int64_t{1} << 31;  // larger ones give 0, too
  return Divider(static_cast<std::uint32_t>(std::min(axis.stride, most)));
}

/// The window that has a pixel as its k-th along an axis, or -1.
__device__ std::int64_t window_with(const WindowAxis& axis, const Divider& stride, std::int64_t pixel,
                                    std::int64_t k) {
  const std::int64_t begin = pixel + axis.padding - k * axis.dilation;
  if (begin < 0) return -1;
  const std::int64_t window = stride.divide(static_cast<std::uint32_t>(begin));
  return window * axis.stride != begin || window >= axis.windows ? -1 : window;
}

template <int width, class E>
__global__ void gather_gradient(PoolWindows pool, Divider row_stride, Divider column_stride,
                                std::int64_t pixels, const E* g, const std::int32_t* places, E* to) {
  const ThreadRows own = thread_rows(pixels, pool.channels, width);
  for (std::int64_t step = 0; step < own.count; ++step) {
    const std::int64_t at = own.at + step * own.step;
    const Place pixel((at - own.column) / pool.channels, pool.rows.image, pool.columns.image);
    const std::int64_t place = pixel.row * pool.columns.image + pixel.column;
    float total[width] = {};
    for (std::int64_t k = pool.rows.kernel - 1; k >= 0; --k) {
      const std::int64_t row = window_with(pool.rows, row_stride, pixel.row, k);
      if (row < 0) continue;
      for (std::int64_t l = pool.columns.kernel - 1; l >= 0; --l) {
        const std::int64_t column = window_with(pool.columns, column_stride, pixel.column, l);
        if (column < 0) continue;
        const std::int64_t window =
            ((pixel.image * pool.rows.windows + row) * pool.columns.windows + column) * pool.channels +
            own.column;
        const auto largest = load_vector<std::int32_t, width>(places + window);
        const auto gradients = load_vector<E, width>(g + window);
        for (int i = 0; i < width; ++i) total[i] += largest[i] == place ? float(gradients[i]) : 0;
      }
    }
    Vector<E, width> totals;
    for (int i = 0; i < width; ++i) totals[i] = E(total[i]);
    store_vector(to + at, totals);
  }
}

}  // namespace

template <class E> void launch_max_pool2d(const PoolWindows& pool, const E* x, E* y, Stream stream) {
  const std::int64_t windows = pool.windows();
  if (windows * pool.channels == 0) return;
  const auto threads = ColumnThreads::over(pool.channels, x, y);
  with_width<E>(threads, [&](auto width) {
    launch(pool_largest<width(), E>, threads.grid(windows), threads.block, 0, stream, pool, windows, x, y);
  });
}

template <class E>
void launch_max_pool2d_pick(const PoolWindows& pool, const E* v, const E* x, E* y, Stream stream) {
  const std::int64_t windows = pool.windows();
  if (windows * pool.channels == 0) return;
  const auto threads = ColumnThreads::over(pool.channels, x);
  with_width<E>(threads, [&](auto width) {
    launch(pick_at_largest<width(), E>, threads.grid(windows), threads.block, 0, stream, pool, windows, v, x,
           y);
  });
}

template <class E>
void launch_max_pool2d_gradient(const PoolWindows& pool, const E* g, const E* x, std::int32_t* places, E* to,
                                Stream stream) {
  const std::int64_t windows = pool.windows(), pixels = pool.pixels();
  if (pixels * pool.channels == 0) return;
  if ((pool.rows.image + pool.rows.padding) * (pool.columns.image + pool.columns.padding) >
      std::numeric_limits<std::int32_t>::max())
    throw Error("max_pool2d_gradient: the padded images have 2^31 pixels or more");
  const auto threads = ColumnThreads::over(pool.channels, g, x, to);
  with_width<E>(threads, [&](auto width) {
    launch(find_largest<width(), E>, threads.grid(windows), threads.block, 0, stream, pool, windows, x,
           places);
    launch(gather_gradient<width(), E>, threads.grid(pixels), threads.block, 0, stream, pool,
           stride_divider(pool.rows), stride_divider(pool.columns), pixels, g,
           static_cast<const std::int32_t*>(places), to);
  });
}

#define TAUT_INSTANTIATE(E)                                                                 \
  template void launch_max_pool2d(const PoolWindows&, const E*, E*, Stream);                \
  template void launch_max_pool2d_pick(const PoolWindows&, const E*, const E*, E*, Stream); \
  template void launch_max_pool2d_gradient(const PoolWindows&, const E*, const E*, std::int32_t*, E*, Stream);
TAUT_INSTANTIATE(float)
TAUT_INSTANTIATE(bfloat16)
#undef TAUT_INSTANTIATE

}  // namespace taut::cuda
