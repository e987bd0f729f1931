#pragma once
// Lookup of rows by index on the device, and its gradient. Indices stay there, so one that is no row is not
// an `Error`: what it looks up is NaN instead.

#include "../op/embedding.hpp"
#include "embedding_launch.hpp"
#include "tensor.hpp"

namespace taut {

template <class E>
BasicCudaTensor<E> eval(const op::Embedding& op, const BasicCudaTensor<E>& weight,
                        const BasicCudaTensor<std::int64_t>& indices) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(weight.shape(), indices.shape()));
  const auto rows = indices.dense();
  cuda::launch_embedding(indices.shape().size(), weight.shape()[0], weight.shape()[1], weight.data(),
                         rows.data(), out.mutable_data(), cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::EmbeddingGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<std::int64_t>& indices) {
  auto out = BasicCudaTensor<E>::zeros(op.shape(g.shape(), indices.shape()));
  const auto gradient = g.dense();
  const auto rows = indices.dense();
  cuda::launch_embedding_gradient(indices.shape().size(), op.rows, g.shape()[-1], gradient.data(),
                                  rows.data(), out.mutable_data(), cuda::current_stream());
  return out;
}

}  // namespace taut
