#pragma once
// The launchers of embeddings, as both the tensors' side and the kernels' side see them. E is float or
// bfloat16.

#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// to[i, :] = table[indices[i], :] for i < count, of a table [rows, n]; NaN for an index that is no row.
template <class E>
void launch_embedding(std::int64_t count, std::int64_t rows, std::int64_t n, const E* table,
                      const std::int64_t* indices, E* to, Stream stream);

/// Adds g[i, :] for i < count to to[indices[i], :], which has to be zeros [rows, n] at first; an index that
/// is no row adds to none.
template <class E>
void launch_embedding_gradient(std::int64_t count, std::int64_t rows, std::int64_t n, const E* g,
                               const std::int64_t* indices, E* to, Stream stream);

}  // namespace taut::cuda
