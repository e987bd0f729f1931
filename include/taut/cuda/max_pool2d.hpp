#pragma once
// Max pooling on the device: results have the channels last.

#include "../op/max_pool2d.hpp"
#include "max_pool2d_launch.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

/// The windows over images of shape x that give y.
inline PoolWindows windows_of(const op::MaxPool2d& pool, const Shape& x, const Shape& y) {
  const HeightWidth stride = pool.steps();
  return {x[0],
          x[1],
          {x[2], y[2], pool.kernel.h, stride.h, pool.padding.h, pool.dilation.h},
          {x[3], y[3], pool.kernel.w, stride.w, pool.padding.w, pool.dilation.w}};
}

}  // namespace cuda

template <class E> BasicCudaTensor<E> eval(const op::MaxPool2d& op, const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape()), cuda::Layout::channels_last);
  const auto from = x.in_layout(cuda::Layout::channels_last);
  cuda::launch_max_pool2d(cuda::windows_of(op, x.shape(), out.shape()), from.data(), out.mutable_data(),
                          cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::MaxPool2dPick& op, const BasicCudaTensor<E>& v,
                        const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(v.shape(), x.shape()), cuda::Layout::channels_last);
  const auto values = v.in_layout(cuda::Layout::channels_last),
             from = x.in_layout(cuda::Layout::channels_last);
  cuda::launch_max_pool2d_pick(cuda::windows_of(op.pool, x.shape(), out.shape()), values.data(), from.data(),
                               out.mutable_data(), cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::MaxPool2dGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(g.shape(), x.shape()), cuda::Layout::channels_last);
  auto places = BasicCudaTensor<std::int32_t>::uninitialized(g.shape());
  const auto values = g.in_layout(cuda::Layout::channels_last),
             from = x.in_layout(cuda::Layout::channels_last);
  cuda::launch_max_pool2d_gradient(cuda::windows_of(op.pool, x.shape(), g.shape()), values.data(),
                                   from.data(), places.mutable_data(), out.mutable_data(),
                                   cuda::current_stream());
  return out;
}

}  // namespace taut
