#pragma once
// Batch normalisation on the device: results have the channels last.

#include "../op/batch_norm.hpp"
#include "batch_norm_launch.hpp"
#include "convert.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

/// [n, c, …] as the shape of images.
constexpr Shape image_shape(const Shape& shape) {
  Shape images{shape[0], shape[1], 1, 1};
  for (int i = 2; i < shape.rank(); ++i) images[i == 2 && shape.rank() == 4 ? 2 : 3] *= shape[i];
  return images;
}

/// x [n, c, …] as images with the channels last.
template <class E> BasicCudaTensor<E> with_channels_last(const BasicCudaTensor<E>& x) {
  if (x.shape().rank() == 4) return x.in_layout(Layout::channels_last);
  return x.with_shape(image_shape(x.shape())).in_layout(Layout::channels_last);
}

/// The tensor of the given shape, [n, c, …], that write(to) makes as images with the channels last.
template <class E, class Write>
BasicCudaTensor<E> made_with_channels_last(const Shape& shape, const Write& write) {
  auto out = BasicCudaTensor<E>::uninitialized(image_shape(shape), Layout::channels_last);
  write(out.mutable_data());
  return shape.rank() == 4 ? out : std::move(out).with_shape(shape);
}

/// Memory for partial sums over the elements of each channel of a tensor [n, c, …].
inline BasicCudaTensor<float> partial_sums(const Shape& shape) {
  return BasicCudaTensor<float>::uninitialized(
      {batch_norm_partials(taut::detail::channel_size(shape), shape[1])});
}

template <class E>
BatchNormParameters<E> parameters_of(const op::BatchNormOptions& options, const BasicCudaTensor<E>& weight,
                                     const BasicCudaTensor<E>& bias, const CudaTensor& statistics) {
  return {weight.data(), bias.data(), statistics.data(), static_cast<float>(options.eps), options.relu};
}

/// The result of `BatchNorm`, with the residual added unless it is null.
template <class E>
BasicCudaTensor<E> normalize(const BasicCudaTensor<E>& x, const BatchNormParameters<E>& parameters,
                             const BasicCudaTensor<E>* residual) {
  const auto from = with_channels_last(x);
  const auto added = residual ? with_channels_last(*residual) : BasicCudaTensor<E>();
  return made_with_channels_last<E>(x.shape(), [&](E* to) {
    launch_batch_norm(taut::detail::channel_size(x.shape()), x.shape()[1], from.data(), parameters,
                      added.data(), to, current_stream());
  });
}

}  // namespace cuda

template <class E> CudaTensor eval(const op::BatchStatistics& op, const BasicCudaTensor<E>& x) {
  auto out = CudaTensor::uninitialized(op.shape(x.shape()));
  auto partials = cuda::partial_sums(x.shape());
  cuda::launch_batch_statistics(detail::channel_size(x.shape()), x.shape()[1],
                                cuda::with_channels_last(x).data(), partials.mutable_data(),
                                out.mutable_data(), cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::BatchNorm& op, const BasicCudaTensor<E>& x,
                        const BasicCudaTensor<E>& weight, const BasicCudaTensor<E>& bias,
                        const CudaTensor& statistics) {
  op.shape(x.shape(), weight.shape(), bias.shape(), statistics.shape());
  const BasicCudaTensor<E>* const no_residual = nullptr;
  return cuda::normalize(x, cuda::parameters_of(op.options, weight, bias, statistics), no_residual);
}

template <class E>
BasicCudaTensor<E> eval(const op::BatchNormAddRelu& op, const BasicCudaTensor<E>& x,
                        const BasicCudaTensor<E>& weight, const BasicCudaTensor<E>& bias,
                        const CudaTensor& statistics, const BasicCudaTensor<E>& residual) {
  op.shape(x.shape(), weight.shape(), bias.shape(), statistics.shape(), residual.shape());
  auto parameters = cuda::parameters_of(op.options, weight, bias, statistics);
  parameters.relu = true;
  return cuda::normalize(x, parameters, &residual);
}

template <class E>
CudaTensor eval(const op::BatchNormSums& op, const BasicCudaTensor<E>& g, const BasicCudaTensor<E>& x,
                const BasicCudaTensor<E>& weight, const BasicCudaTensor<E>& bias,
                const CudaTensor& statistics) {
  auto out = CudaTensor::uninitialized(
      op.shape(g.shape(), x.shape(), weight.shape(), bias.shape(), statistics.shape()));
  auto partials = cuda::partial_sums(x.shape());
  const auto gradient = cuda::with_channels_last(g), from = cuda::with_channels_last(x);
  cuda::launch_batch_norm_sums(detail::channel_size(x.shape()), x.shape()[1], gradient.data(), from.data(),
                               cuda::parameters_of(op.options, weight, bias, statistics),
                               partials.mutable_data(), out.mutable_data(), cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::BatchNormGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& weight,
                        const BasicCudaTensor<E>& bias, const CudaTensor& statistics,
                        const CudaTensor& sums) {
  op.shape(g.shape(), x.shape(), weight.shape(), bias.shape(), statistics.shape(), sums.shape());
  const auto gradient = cuda::with_channels_last(g), from = cuda::with_channels_last(x);
  return cuda::made_with_channels_last<E>(x.shape(), [&](E* to) {
    cuda::launch_batch_norm_gradient(detail::channel_size(x.shape()), x.shape()[1], gradient.data(),
                                     from.data(), cuda::parameters_of(op.options, weight, bias, statistics),
                                     op.options.batch ? sums.data() : nullptr, to, cuda::current_stream());
  });
}

}  // namespace taut
