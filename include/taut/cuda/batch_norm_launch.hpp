#pragma once
// The launchers of batch normalisation, as both the tensors' side and the kernels' side see them. Tensors are
// matrices [rows, channels]: images with the channels last, a pixel a row. E is float or bfloat16;
// statistics and sums are floats.

#include <cstdint>

#include "column_groups.hpp"
#include "device.hpp"

namespace taut::cuda {

/// How many floats the launchers of sums need for partial ones.
constexpr std::int64_t batch_norm_partials(std::int64_t rows, std::int64_t channels) {
  return 3 * column_groups(rows) * channels;
}

/// What normalises each channel: weight and bias [channels], mean and variance [2, channels].
template <class E> struct BatchNormParameters {
  const E* weight;
  const E* bias;
  const float* statistics;
  float eps;
  bool relu;
};

/// Writes mean and biased variance of each channel to `to` [2, channels].
template <class E>
void launch_batch_statistics(std::int64_t rows, std::int64_t channels, const E* x, float* partials, float* to,
                             Stream stream);

/// y = weight x̂ + bias, plus the residual unless it is null; then ReLU if the parameters say so.
template <class E>
void launch_batch_norm(std::int64_t rows, std::int64_t channels, const E* x,
                       const BatchNormParameters<E>& parameters, const E* residual, E* y, Stream stream);

/// Writes Σ g and Σ g x̂ of each channel to `to` [2, channels], g counting as 0 where ReLU cut the result off.
template <class E>
void launch_batch_norm_sums(std::int64_t rows, std::int64_t channels, const E* g, const E* x,
                            const BatchNormParameters<E>& parameters, float* partials, float* to,
                            Stream stream);

/// Writes the gradient by x, with the sums' part unless `sums` is null.
template <class E>
void launch_batch_norm_gradient(std::int64_t rows, std::int64_t channels, const E* g, const E* x,
                                const BatchNormParameters<E>& parameters, const float* sums, E* to,
                                Stream stream);

}  // namespace taut::cuda
