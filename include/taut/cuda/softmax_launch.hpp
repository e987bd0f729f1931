#pragma once
// The launchers of softmax, as both the tensors' side and the kernels' side see them.

#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// Writes softmax of x [outer, n, inner] along the middle axis to y, or its logarithm, for E float or
/// bfloat16.
template <class E>
void launch_softmax(bool logarithm, std::int64_t outer, std::int64_t n, std::int64_t inner, const E* x, E* y,
                    Stream stream);

}  // namespace taut::cuda
