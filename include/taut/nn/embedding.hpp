#pragma once

#include "../op/embedding.hpp"
#include "init.hpp"

namespace taut::nn {

/// Vectors looked up by index: indices of shape s to [s…, embedding_dim]. `weight` is [num_embeddings,
/// embedding_dim], as in PyTorch.
template <AnyTensor T> struct Embedding {
  T weight;

  /// Weights from the standard normal distribution, as PyTorch's.
  static constexpr Embedding make(std::int64_t num_embeddings, std::int64_t embedding_dim, Rng& rng) {
    return {normal<T>({num_embeddings, embedding_dim}, 1, rng)};
  }

  /// The same where only shapes count.
  static constexpr Embedding make(std::int64_t num_embeddings, std::int64_t embedding_dim)  //
      requires std::constructible_from<T, const Shape&> {
    return {T(Shape{num_embeddings, embedding_dim})};
  }

  constexpr T operator()(const typename T::Index& indices) const { return embedding(indices, weight); }
};

}  // namespace taut::nn
