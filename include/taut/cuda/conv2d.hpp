#pragma once
// Convolution on the device: images and kernels have their channels last, and so have the results.

#include "conv2d_launch.hpp"
#include "elementwise.hpp"
#include "movement.hpp"

namespace taut {

namespace cuda {

/// The convolution of the given result shape; `bias` may be null.
template <class E>
BasicCudaTensor<E> convolve(const op::Conv2d& op, const Shape& shape, const BasicCudaTensor<E>& x,
                            const BasicCudaTensor<E>& w, const BasicCudaTensor<E>* bias) {
  const ConvGeometry geometry(op, x.shape(), w.shape(), shape);
  const auto per_channel = [&] { return bias->with_shape({1, shape[1], 1, 1}); };
  if (geometry.empty())
    return bias ? eval(op::BroadcastTo{shape}, per_channel()) : BasicCudaTensor<E>::zeros(shape);
  const auto images = x.in_layout(Layout::channels_last), kernels = w.in_layout(Layout::channels_last);
  auto y = BasicCudaTensor<E>::uninitialized(shape, Layout::channels_last);
  const bool complete = launch_conv2d<E>(geometry, images.data(), kernels.data(),
                                         bias ? bias->data() : nullptr, y.mutable_data(), current_stream());
  return bias && !complete ? eval(op::Add{}, std::move(y), per_channel()) : y;
}

}  // namespace cuda

template <class E>
BasicCudaTensor<E> eval(const op::Conv2d& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& w) {
  return cuda::convolve<E>(op, op.shape(x.shape(), w.shape()), x, w, nullptr);
}

template <class E>
BasicCudaTensor<E> eval(const op::Conv2d& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& w,
                        const BasicCudaTensor<E>& bias) {
  return cuda::convolve<E>(op, op.shape(x.shape(), w.shape(), bias.shape()), x, w, &bias);
}

template <class E>
BasicCudaTensor<E> eval(const op::Conv2dDataGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& w) {
  const Shape shape = op.shape(g.shape(), w.shape());
  const cuda::ConvGeometry geometry(op.conv, shape, w.shape(), g.shape());
  if (geometry.empty()) return BasicCudaTensor<E>::zeros(shape);
  const auto gradient = g.in_layout(cuda::Layout::channels_last);
  const auto kernels = w.in_layout(cuda::Layout::channels_last);
  auto dx = BasicCudaTensor<E>::uninitialized(shape, cuda::Layout::channels_last);
  cuda::launch_conv2d_data_gradient(geometry, gradient.data(), kernels.data(), dx.mutable_data(),
                                    cuda::current_stream());
  return dx;
}

template <class E>
BasicCudaTensor<E> eval(const op::Conv2dWeightGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& x) {
  const Shape shape = op.shape(g.shape(), x.shape());
  const cuda::ConvGeometry geometry(op.conv, x.shape(), shape, g.shape());
  if (geometry.empty()) return BasicCudaTensor<E>::zeros(shape);
  const auto gradient = g.in_layout(cuda::Layout::channels_last);
  const auto images = x.in_layout(cuda::Layout::channels_last);
  auto dw = BasicCudaTensor<E>::uninitialized(shape, cuda::Layout::channels_last);
  cuda::launch_conv2d_weight_gradient(geometry, gradient.data(), images.data(), dw.mutable_data(),
                                      cuda::current_stream());
  return dw;
}

}  // namespace taut
