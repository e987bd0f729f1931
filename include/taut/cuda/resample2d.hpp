#pragma once
// Average pooling and upsampling on the device: results have the channels last.

#include "resample2d_launch.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

/// The resampling of images of shape `from` to shape `to`.
inline Resampling resampling(const Shape& from, const Shape& to) {
  return {from[0], from[1], from[2], from[3], to[2], to[3]};
}

}  // namespace cuda

template <op::ResamplingOp Op, class E> BasicCudaTensor<E> eval(const Op& op, const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape()), cuda::Layout::channels_last);
  cuda::launch_resample(op, cuda::resampling(x.shape(), out.shape()),
                        x.in_layout(cuda::Layout::channels_last).data(), out.mutable_data(),
                        cuda::current_stream());
  return out;
}

template <op::ResamplingOp Op, class E>
BasicCudaTensor<E> eval(const op::ResampleGradient<Op>& op, const BasicCudaTensor<E>& g) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(g.shape()), cuda::Layout::channels_last);
  cuda::launch_resample_adjoint(op.op, cuda::resampling(out.shape(), g.shape()),
                                g.in_layout(cuda::Layout::channels_last).data(), out.mutable_data(),
                                cuda::current_stream());
  return out;
}

}  // namespace taut
