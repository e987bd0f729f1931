#pragma once
// Max pooling. The kernels look for the largest element of up to 16 channels at once, as far as they lie
// together.

#include "../op/max_pool2d.hpp"
#include "array.hpp"

namespace taut {

namespace cpu {

/// The largest elements of a window in neighbouring channels, and at which pixels of the image they are.
template <class E> struct WindowMaxima {
  static constexpr std::int64_t most = 16;
  std::int64_t lanes;
  E value[most];
  std::int64_t pixel[most];

  void consider(const E* x, std::int64_t at, bool first) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      // Like PyTorch: NaN wins.
      const bool better = first || x[l] > value[l] || x[l] != x[l];
      value[l] = better ? x[l] : value[l];
      pixel[l] = better ? at : pixel[l];
    }
  }
};

/// Calls visit(maxima, x, y) for each window of each group of channels, with the offsets of the group's first
/// pixel and of the window's result. Threads share the groups.
template <class E, class F>
void for_each_window(const op::MaxPool2d& pool, const BasicCpuArray<E>& x, const Shape& y, Layout layout,
                     const F& visit) {
  const ImageView view(x.shape(), layout);
  const auto h = x.shape()[2], w = x.shape()[3], oh = y[2], ow = y[3];
  const auto block = view.block, chunks = (block + WindowMaxima<E>::most - 1) / WindowMaxima<E>::most;
  const auto groups = view.n * view.blocks * chunks;
  const E* const from = x.data(layout);
  parallel_for(groups, std::max<std::int64_t>(1, default_grain / std::max<std::int64_t>(1, view.pixels * 16)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto group = begin; group < end; ++group) {
                   const auto plane = group / chunks, lane = group % chunks * WindowMaxima<E>::most;
                   const auto at_x = plane * h * w * block + lane, at_y = plane * oh * ow * block + lane;
                   for (std::int64_t i = 0; i < oh; ++i)
                     for (std::int64_t j = 0; j < ow; ++j) {
                       WindowMaxima<E> maxima;
                       maxima.lanes = std::min(WindowMaxima<E>::most, block - lane);
                       bool first = true;
                       for (std::int64_t k = 0; k < pool.kernel.h; ++k) {
                         const auto row = i * pool.steps().h + k * pool.dilation.h - pool.padding.h;
                         if (row < 0 || row >= h) continue;
                         for (std::int64_t l = 0; l < pool.kernel.w; ++l) {
                           const auto column = j * pool.steps().w + l * pool.dilation.w - pool.padding.w;
                           if (column < 0 || column >= w) continue;
                           const auto pixel = row * w + column;
                           maxima.consider(from + at_x + pixel * block, pixel, first);
                           first = false;
                         }
                       }
                       visit(maxima, at_x, at_y + (i * ow + j) * block);
                     }
                 }
               });
}

}  // namespace cpu

template <class E> BasicCpuArray<E> eval(const op::MaxPool2d& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()), x.layout());
  E* const to = out.mutable_data();
  cpu::for_each_window(op, x, out.shape(), x.layout(),
                       [=](const auto& maxima, std::int64_t, std::int64_t at) {
                         std::copy_n(maxima.value, maxima.lanes, to + at);
                       });
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::MaxPool2dPick& op, const BasicCpuArray<E>& v, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(v.shape(), x.shape()), x.layout());
  const auto block = cpu::ImageView(x.shape(), x.layout()).block;
  const E* const from = v.data(x.layout());
  E* const to = out.mutable_data();
  cpu::for_each_window(op.pool, x, out.shape(), x.layout(),
                       [=](const auto& maxima, std::int64_t at_x, std::int64_t at) {
                         for (std::int64_t l = 0; l < maxima.lanes; ++l)
                           to[at + l] = from[at_x + maxima.pixel[l] * block + l];
                       });
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::MaxPool2dGradient& op, const BasicCpuArray<E>& g, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(g.shape(), x.shape()), x.layout());
  const auto block = cpu::ImageView(x.shape(), x.layout()).block;
  const E* const from = g.data(x.layout());
  E* const to = out.mutable_data();
  std::fill_n(to, x.shape().size(), E(0));
  cpu::for_each_window(op.pool, x, g.shape(), x.layout(),
                       [=](const auto& maxima, std::int64_t at_x, std::int64_t at) {
                         for (std::int64_t l = 0; l < maxima.lanes; ++l)
                           to[at_x + maxima.pixel[l] * block + l] += from[at + l];
                       });
  return out;
}

}  // namespace taut
