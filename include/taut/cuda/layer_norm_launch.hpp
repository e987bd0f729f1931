#pragma once
// The launchers of layer normalisation, as both the tensors' side and the kernels' side see them. Tensors are
// matrices [rows, n], of which each row is normalised. E is float or bfloat16.

#include <cstdint>

#include "column_groups.hpp"
#include "device.hpp"

namespace taut::cuda {

/// y = weight x̂ + bias, with weight and bias [n].
template <class E>
void launch_layer_norm(std::int64_t rows, std::int64_t n, float eps, const E* x, const E* weight,
                       const E* bias, E* y, Stream stream);

/// Writes the gradient by x.
template <class E>
void launch_layer_norm_gradient(std::int64_t rows, std::int64_t n, float eps, const E* g, const E* x,
                                const E* weight, E* to, Stream stream);

/// How many floats `launch_layer_norm_sums` needs: each row's statistics and the partial sums.
constexpr std::int64_t layer_norm_workspace(std::int64_t rows, std::int64_t n) {
  return 2 * rows + 2 * column_groups(rows) * n;
}

/// Writes Σ g and Σ g x̂ of each column to `to` [2, n].
template <class E>
void launch_layer_norm_sums(std::int64_t rows, std::int64_t n, float eps, const E* g, const E* x,
                            float* workspace, E* to, Stream stream);

}  // namespace taut::cuda
