#pragma once
// Dropout on the device, with the CPU's mask.

#include "../op/dropout.hpp"
#include "dropout_launch.hpp"
#include "recording.hpp"
#include "tensor.hpp"

namespace taut {

template <class E> BasicCudaTensor<E> eval(const op::Dropout& op, const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape()));
  const float scale = op.p < 1 ? static_cast<float>(1 / (1 - op.p)) : 0;
  // The mask is a function of the position in row-major order.
  cuda::launch_dropout(x.shape().size(), static_cast<float>(op.p), scale, cuda::at_replay(op.stream),
                       x.dense().data(), out.mutable_data(), cuda::current_stream());
  return out;
}

}  // namespace taut
