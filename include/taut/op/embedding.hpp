#pragma once
// Rows of a table, looked up by integer indices.

#include <array>
#include <cstdint>
#include <string_view>

#include "operator.hpp"

namespace taut {

namespace op {

/// The row of the weight [rows, n] that each index names: for indices of shape s, [s…, n].
struct Embedding {
  static constexpr std::string_view name = "embedding";

  constexpr Shape shape(const Shape& weight, const Shape& indices) const {
    require(weight.rank() == 2, name, "the weight must be [num_embeddings, embedding_dim]", weight, indices);
    require(indices.rank() < max_rank, name, "the indices' rank leaves no room for the rows", weight,
            indices);
    Shape to = indices;
    to.push_back(weight[1]);
    return to;
  }
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize&, const DenseSize& indices) const {
    return 2 * result.bytes() + indices.bytes();
  }
  template <AnyTensor T>
  auto pullback(Needs<2>, const T&, const T& weight, const typename T::Index& indices) const;
};

/// Row r is the sum of those vectors of g [s…, n] whose index, of indices of shape s, is r: [rows, n]. The
/// gradient of `Embedding` by its weight, and its adjoint.
struct EmbeddingGradient {
  static constexpr std::string_view name = "embedding_gradient";
  std::int64_t rows = 0;

  constexpr Shape shape(const Shape& g, const Shape& indices) const {
    Shape expected = indices;
    if (g.rank() == indices.rank() + 1) expected.push_back(g[-1]);
    require(g.rank() >= 1 && g == expected, name, "takes one vector for each index", g, indices);
    return {rows, g[-1]};
  }
  constexpr std::int64_t flops(const Shape& g, const Shape&) const { return g.size(); }
  template <AnyTensor T> auto pullback(Needs<2>, const T&, const T&, const typename T::Index& indices) const {
    return [indices](const T& g) { return std::array<T, 2>{eval(Embedding{}, g, indices), T{}}; };
  }
};

template <AnyTensor T>
auto Embedding::pullback(Needs<2>, const T&, const T& weight, const typename T::Index& indices) const {
  return [indices, rows = weight.shape()[0]](const T& g) {
    return std::array<T, 2>{eval(EmbeddingGradient{rows}, g, indices), T{}};
  };
}

}  // namespace op

/// The row of the weight [num_embeddings, embedding_dim] that each index names, as PyTorch's `embedding`: for
/// indices of shape s, [s…, embedding_dim]. An index outside 0 … num_embeddings - 1 is an `Error` on the CPU.
template <AnyTensor Indices, AnyTensor W> constexpr auto embedding(const Indices& indices, const W& weight) {
  return eval(op::Embedding{}, weight, indices);
}

}  // namespace taut
