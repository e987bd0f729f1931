// Average pooling and upsampling of images with the channels last: one kernel for all, and one for their
// adjoints. A thread takes neighbouring channels of a place of the result (columns.cuh) and sums, in float
// and row by row, what the operator's own rule says that the place takes. The adjoint is gathered, so that no
// two threads add to one element and the order is fixed: the places that take a pixel are neighbours, and
// their ends are found by bisection. All of the outputs is overwritten.

#include "taut/cuda/resample2d_launch.hpp"

#include "taut/cuda/kernel/columns.cuh"

namespace taut::cuda {

namespace {

/// The weight of the k-th element that a place takes along an axis.
__device__ float weight_of(const op::Taps& taps, std::int64_t k) {
  return static_cast<float>(k + 1 < taps.count ? taps.weight : taps.last);
}

template <int width, class E> __device__ void store_totals(const float (&totals)[width], E* to) {
  Vector<E, width> values;
  for (int i = 0; i < width; ++i) values[i] = E(totals[i]);
  store_vector(to, values);
}

/// Adds the elements of a vector with a weight.
template <int width, class E>
__device__ void add_weighted(float weight, const Vector<E, width>& from, float (&totals)[width]) {
  for (int i = 0; i < width; ++i) totals[i] += weight * float(from[i]);
}
template <int width>
__device__ void add_weighted(float weight, const float (&from)[width], float (&totals)[width]) {
  for (int i = 0; i < width; ++i) totals[i] += weight * from[i];
}

template <int width, class Op, class E> __global__ void resample(Op op, Resampling images, const E* x, E* y) {
  const ThreadRows own = thread_rows(images.n * images.to_h * images.to_w, images.channels, width);
  for (std::int64_t step = 0; step < own.count; ++step) {
    const std::int64_t at = own.at + step * own.step, place = own.row + step * own.row_step;
    const std::int64_t line = place / images.to_w, image = line / images.to_h;
    const op::Taps rows = op.taps(0, images.h, images.to_h, line - image * images.to_h);
    const op::Taps columns = op.taps(1, images.w, images.to_w, place - line * images.to_w);
    float totals[width] = {};
    for (std::int64_t k = 0; k < rows.count; ++k) {
      const std::int64_t pixel = (image * images.h + rows.first + k) * images.w + columns.first;
      const E* const from = x + pixel * images.channels + own.column;
      float of_row[width] = {};
      for (std::int64_t l = 0; l < columns.count; ++l)
        add_weighted(weight_of(columns, l), load_vector<E, width>(from + l * images.channels), of_row);
      add_weighted(weight_of(rows, k), of_row, totals);
    }
    store_totals(totals, y + at);
  }
}

/// The first i < n for which is_beyond(i), or n; it must be so for all after the first, too.
template <class Condition> __device__ std::int64_t first_beyond(std::int64_t n, const Condition& is_beyond) {
  std::int64_t begin = 0;
  while (begin < n) {
    const std::int64_t middle = (begin + n) / 2;
    if (is_beyond(middle))
      n = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

/// The places of the result that take element `pixel` along an axis: from begin to before end.
struct Takers {
  std::int64_t begin, end;

  template <class Op>
  __device__ Takers(const Op& op, int axis, std::int64_t from, std::int64_t to, std::int64_t pixel) {
    begin = first_beyond(to, [&](std::int64_t i) {
      const op::Taps taps = op.taps(axis, from, to, i);
      return taps.first + taps.count > pixel;
    });
    end = first_beyond(to, [&](std::int64_t i) { return op.taps(axis, from, to, i).first > pixel; });
  }
};

template <int width, class Op, class E>
__global__ void resample_adjoint(Op op, Resampling images, const E* g, E* to) {
  const ThreadRows own = thread_rows(images.n * images.h * images.w, images.channels, width);
  for (std::int64_t step = 0; step < own.count; ++step) {
    const std::int64_t at = own.at + step * own.step, pixel = own.row + step * own.row_step;
    const std::int64_t line = pixel / images.w, image = line / images.h;
    const std::int64_t row = line - image * images.h, column = pixel - line * images.w;
    const Takers rows(op, 0, images.h, images.to_h, row), columns(op, 1, images.w, images.to_w, column);
    float totals[width] = {};
    for (auto i = rows.begin; i < rows.end; ++i) {
      const E* const from = g + (image * images.to_h + i) * images.to_w * images.channels + own.column;
      float of_row[width] = {};
      for (auto j = columns.begin; j < columns.end; ++j) {
        const op::Taps taps = op.taps(1, images.w, images.to_w, j);
        add_weighted(weight_of(taps, column - taps.first), load_vector<E, width>(from + j * images.channels),
                     of_row);
      }
      const op::Taps taps = op.taps(0, images.h, images.to_h, i);
      add_weighted(weight_of(taps, row - taps.first), of_row, totals);
    }
    store_totals(totals, to + at);
  }
}

}  // namespace

template <op::ResamplingOp Op, class E>
void launch_resample(const Op& op, const Resampling& images, const E* x, E* y, Stream stream) {
  const std::int64_t places = images.n * images.to_h * images.to_w;
  if (places * images.channels == 0) return;
  const auto threads = ColumnThreads::over(images.channels, x, y);
  with_width<E>(threads, [&](auto width) {
    launch(resample<width(), Op, E>, threads.grid(places), threads.block, 0, stream, op, images, x, y);
  });
}

template <op::ResamplingOp Op, class E>
void launch_resample_adjoint(const Op& op, const Resampling& images, const E* g, E* to, Stream stream) {
  const std::int64_t pixels = images.n * images.h * images.w;
  if (pixels * images.channels == 0) return;
  const auto threads = ColumnThreads::over(images.channels, g, to);
  with_width<E>(threads, [&](auto width) {
    launch(resample_adjoint<width(), Op, E>, threads.grid(pixels), threads.block, 0, stream, op, images, g,
           to);
  });
}

#define TAUT_INSTANTIATE(Op, E)                                                          \
  template void launch_resample(const op::Op&, const Resampling&, const E*, E*, Stream); \
  template void launch_resample_adjoint(const op::Op&, const Resampling&, const E*, E*, Stream);
TAUT_INSTANTIATE(AvgPool2d, float)
TAUT_INSTANTIATE(AvgPool2d, bfloat16)
TAUT_INSTANTIATE(AdaptiveAvgPool2d, float)
TAUT_INSTANTIATE(AdaptiveAvgPool2d, bfloat16)
TAUT_INSTANTIATE(Upsample2d, float)
TAUT_INSTANTIATE(Upsample2d, bfloat16)
#undef TAUT_INSTANTIATE

}  // namespace taut::cuda
