#pragma once
// Convolution on the device: images and kernels have their channels last, and so have the results.

#include "conv2d_launch.hpp"
#include "elementwise.hpp"
#include "movement.hpp"

namespace taut {

namespace cuda {

/// The tensors of a convolution's ending, null where there is none, and whether ReLU is its last part.
template <class E> struct ConvTail {
  const BasicCudaTensor<E>* bias = nullptr;
  const BasicCudaTensor<E>* residual = nullptr;
  bool relu = false;
};

/// y = conv(images, kernels) with its ending in one pass, for channels last; false if that cannot be.
template <class E>
bool convolve_at_once(const ConvGeometry& geometry, const BasicCudaTensor<E>& images,
                      const BasicCudaTensor<E>& kernels, const ConvTail<E>& tail, BasicCudaTensor<E>& y) {
  const auto residual =
      tail.residual ? tail.residual->in_layout(Layout::channels_last) : BasicCudaTensor<E>();
  const ConvEnding<E> ending{tail.bias ? tail.bias->data() : nullptr,
                             tail.residual ? residual.data() : nullptr, tail.relu};
  return launch_conv2d<E>(geometry, images.data(), kernels.data(), ending, y.mutable_data(),
                          current_stream());
}

/// The convolution of the given result shape. Where cuDNN does not know the ending, its last part is a pass
/// of its own, and the rest is tried again.
template <class E>
BasicCudaTensor<E> convolve(const op::Conv2d& op, const Shape& shape, const BasicCudaTensor<E>& x,
                            const BasicCudaTensor<E>& w, const ConvTail<E>& tail = {}) {
  const ConvGeometry geometry(op, x.shape(), w.shape(), shape);
  const auto images = x.in_layout(Layout::channels_last), kernels = w.in_layout(Layout::channels_last);
  if (!geometry.empty()) {
    auto y = BasicCudaTensor<E>::uninitialized(shape, Layout::channels_last);
    if (convolve_at_once(geometry, images, kernels, tail, y)) return y;
  }
  if (tail.residual)
    return eval(op::AddRelu{}, convolve<E>(op, shape, images, kernels, {tail.bias}), *tail.residual);
  if (tail.relu) return eval(op::Relu{}, convolve<E>(op, shape, images, kernels, {tail.bias}));
  if (tail.bias)
    return eval(op::Add{}, convolve<E>(op, shape, images, kernels),
                tail.bias->with_shape({1, shape[1], 1, 1}));
  return BasicCudaTensor<E>::zeros(shape);
}

}  // namespace cuda

template <class E>
BasicCudaTensor<E> eval(const op::Conv2d& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& w) {
  return cuda::convolve<E>(op, op.shape(x.shape(), w.shape()), x, w);
}

template <class E>
BasicCudaTensor<E> eval(const op::Conv2d& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& w,
                        const BasicCudaTensor<E>& bias) {
  return cuda::convolve<E>(op, op.shape(x.shape(), w.shape(), bias.shape()), x, w, {&bias});
}

template <class E>
BasicCudaTensor<E> eval(const op::Conv2dRelu& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& w,
                        const BasicCudaTensor<E>& bias) {
  const Shape shape = op.shape(x.shape(), w.shape(), bias.shape());
  return cuda::convolve<E>(op.conv, shape, x, w, {&bias, nullptr, true});
}

template <class E>
BasicCudaTensor<E> eval(const op::Conv2dRelu& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& w,
                        const BasicCudaTensor<E>& bias, const BasicCudaTensor<E>& residual) {
  const Shape shape = op.shape(x.shape(), w.shape(), bias.shape(), residual.shape());
  return cuda::convolve<E>(op.conv, shape, x, w, {&bias, &residual, true});
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
