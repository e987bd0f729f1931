#pragma once
// Layer normalisation on the device.

#include "../op/layer_norm.hpp"
#include "layer_norm_launch.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

/// How many rows of n elements a tensor of the given shape has.
constexpr std::int64_t row_count(const Shape& shape, std::int64_t n) { return n == 0 ? 0 : shape.size() / n; }

}  // namespace cuda

template <class E>
BasicCudaTensor<E> eval(const op::LayerNorm& op, const BasicCudaTensor<E>& x,
                        const BasicCudaTensor<E>& weight, const BasicCudaTensor<E>& bias) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape(), weight.shape(), bias.shape()));
  const std::int64_t n = weight.shape().size();
  const auto from = x.dense(), w = weight.dense(), b = bias.dense();
  cuda::launch_layer_norm(cuda::row_count(x.shape(), n), n, static_cast<float>(op.eps), from.data(), w.data(),
                          b.data(), out.mutable_data(), cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::LayerNormGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& weight) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(g.shape(), x.shape(), weight.shape()));
  const std::int64_t n = weight.shape().size();
  const auto gradient = g.dense(), from = x.dense(), w = weight.dense();
  cuda::launch_layer_norm_gradient(cuda::row_count(x.shape(), n), n, static_cast<float>(op.eps),
                                   gradient.data(), from.data(), w.data(), out.mutable_data(),
                                   cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::LayerNormSums& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(g.shape(), x.shape()));
  const std::int64_t n = out.shape()[1], rows = cuda::row_count(x.shape(), n);
  const auto gradient = g.dense(), from = x.dense();
  auto workspace = CudaTensor::uninitialized({cuda::layer_norm_workspace(rows, n)});
  cuda::launch_layer_norm_sums(rows, n, static_cast<float>(op.eps), gradient.data(), from.data(),
                               workspace.mutable_data(), out.mutable_data(), cuda::current_stream());
  return out;
}

}  // namespace taut
