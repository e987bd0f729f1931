#pragma once
// The launchers of cross-entropy and of selection by label, as both the tensors' side and the kernels' side
// see them. E is float or bfloat16.

#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// to[i] = x[i, labels[i]] of x [rows, classes].
template <class E>
void launch_pick(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels, E* to,
                 Stream stream);

/// to[i, labels[i]] = x[i], and zeros elsewhere, of x [rows].
template <class E>
void launch_unpick(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels, E* to,
                   Stream stream);

/// Writes the mean of the rows' losses to `to`; `losses` is for one of each row.
template <class E>
void launch_cross_entropy(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels,
                          float* losses, E* to, Stream stream);

/// Writes g (softmax(x) - onehot(labels)) / rows to `to`.
template <class E>
void launch_cross_entropy_gradient(std::int64_t rows, std::int64_t classes, const E* g, const E* x,
                                   const std::int64_t* labels, E* to, Stream stream);

}  // namespace taut::cuda
