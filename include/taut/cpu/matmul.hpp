#pragma once
// Matrix products on dense arrays, by `cpu::gemm`.

#include "../op/matmul.hpp"
#include "array.hpp"
#include "gemm.hpp"
#include "movement.hpp"

namespace taut {

template <class E>
BasicCpuArray<E> eval(const op::Matmul& op, const BasicCpuArray<E>& a, const BasicCpuArray<E>& b) {
  const Shape shape = op.shape(a.shape(), b.shape());
  auto out = BasicCpuArray<E>::uninitialized(shape);
  cpu::Gemm product{.m = shape[-2],
                    .n = shape[-1],
                    .k = a.shape()[op.transpose_a ? -2 : -1],
                    .transpose_a = op.transpose_a,
                    .transpose_b = op.transpose_b};
  const Shape batch = op.batch_of(shape);
  if (batch.size() > 0 && b.shape().rank() == 2 && !op.transpose_a) {
    product.m *= batch.size();  // one matrix for the whole batch: one product over all rows
    cpu::gemm(product, a.data(), b.data(), static_cast<const E*>(nullptr), out.mutable_data());
    return out;
  }
  product.batch = batch.size();
  // A batch is evenly spaced if an operand has all of it or none; else it is repeated first.
  const auto spread = [&](const BasicCpuArray<E>& x, std::int64_t& stride) {
    const auto matrix = x.shape()[-2] * x.shape()[-1];
    const Shape own = op.batch_of(x.shape());
    if (own.size() == 1) return stride = 0, x;
    stride = matrix;
    if (own.size() == batch.size()) return x;
    Shape full = batch;
    full.push_back(x.shape()[-2]);
    full.push_back(x.shape()[-1]);
    return eval(op::BroadcastTo{full}, x);
  };
  const auto left = spread(a, product.stride_a), right = spread(b, product.stride_b);
  cpu::gemm(product, left.data(), right.data(), static_cast<const E*>(nullptr), out.mutable_data());
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::Linear& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& weight,
                      const BasicCpuArray<E>& bias) {
  const Shape shape = op.shape(x.shape(), weight.shape(), bias.shape());
  auto out = BasicCpuArray<E>::uninitialized(shape);
  const cpu::Gemm product{.m = shape[-1] > 0 ? shape.size() / shape[-1] : 0,
                          .n = weight.shape()[0],
                          .k = weight.shape()[1],
                          .transpose_b = true};
  cpu::gemm(product, x.data(), weight.data(), bias.data(), out.mutable_data());
  return out;
}

}  // namespace taut
