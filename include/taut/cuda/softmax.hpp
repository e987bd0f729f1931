#pragma once
// Softmax and its logarithm on the device, along any axis.

#include "../op/softmax.hpp"
#include "softmax_launch.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

/// softmax of x along an axis, or its logarithm.
template <class E> BasicCudaTensor<E> softmax_along(bool logarithm, const BasicCudaTensor<E>& x, int axis) {
  const BasicCudaTensor<E> from = x.dense();
  const Shape& shape = from.shape();
  auto out = BasicCudaTensor<E>::uninitialized(shape);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  launch_softmax(logarithm, outer, shape[axis], inner, from.data(), out.mutable_data(), current_stream());
  return out;
}

}  // namespace cuda

template <class E> BasicCudaTensor<E> eval(const op::Softmax& op, const BasicCudaTensor<E>& x) {
  op.shape(x.shape());
  return cuda::softmax_along(false, x, normalize_axis(op.name, op.axis, x.shape()));
}

template <class E> BasicCudaTensor<E> eval(const op::LogSoftmax& op, const BasicCudaTensor<E>& x) {
  op.shape(x.shape());
  return cuda::softmax_along(true, x, normalize_axis(op.name, op.axis, x.shape()));
}

}  // namespace taut
