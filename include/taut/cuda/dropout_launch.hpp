#pragma once
// The launcher of dropout, as both the tensors' side and the kernel's side see it.

#include <cstdint>

#include "../core/random.hpp"
#include "argument.hpp"
#include "device.hpp"

namespace taut::cuda {

/// to[i] = scale from[i] where the stream's uniform number i is at least p, else 0; for E float or bfloat16.
template <class E>
void launch_dropout(std::int64_t n, float p, float scale, const Argument<RandomStream>& numbers,
                    const E* from, E* to, Stream stream);

}  // namespace taut::cuda
