#pragma once
// In how many groups kernels sum the rows of a matrix (kernel/columns.cuh).

#include <algorithm>
#include <cstdint>

namespace taut::cuda {

/// In how many groups rows are summed.
constexpr std::int64_t column_groups(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 64, 1, 256);
}

}  // namespace taut::cuda
