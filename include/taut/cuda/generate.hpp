#pragma once
// Kernels that make tensors out of nothing.

#include <cstdint>

#include "../core/random.hpp"
#include "argument.hpp"
#include "device.hpp"

namespace taut::cuda {

/// to[i] = value for i < n, for E float, bfloat16 or std::int64_t.
template <class E> void launch_fill(std::int64_t n, E value, E* to, Stream stream);

/// to[i] = low + (high - low) uᵢ with the stream's uniform numbers u, for E float or bfloat16.
template <class E>
void launch_uniform(std::int64_t n, float low, float high, const Argument<RandomStream>& numbers, E* to,
                    Stream stream);

/// to[i] = mean + deviation zᵢ with the stream's normal numbers z, for E float or bfloat16.
template <class E>
void launch_normal(std::int64_t n, float mean, float deviation, const Argument<RandomStream>& numbers, E* to,
                   Stream stream);

}  // namespace taut::cuda
