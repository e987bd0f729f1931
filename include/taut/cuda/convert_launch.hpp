#pragma once
// The launcher of conversions between element types, as both the tensors' side and the kernel's side see it.

#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// to[i] = from[i], rounded to nearest, for i < n, between float and bfloat16.
template <class From, class To> void launch_convert(std::int64_t n, const From* from, To* to, Stream stream);

}  // namespace taut::cuda
