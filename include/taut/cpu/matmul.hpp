#pragma once
// Matrix products on dense arrays, by `cpu::gemm`.

#include "../op/matmul.hpp"
#include "array.hpp"
#include "elementwise.hpp"
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

namespace cpu {

/// x Wᵀ + bias, of the given shape, and of that the ReLU if it is wanted. Weights that are used again before
/// they change are packed for that, and kept with them.
template <class E>
BasicCpuArray<E> linear_layer(const Shape& shape, const BasicCpuArray<E>& x, const BasicCpuArray<E>& weight,
                              const BasicCpuArray<E>& bias, bool relu) {
  auto out = BasicCpuArray<E>::uninitialized(shape);
  Gemm product{.m = shape[-1] > 0 ? shape.size() / shape[-1] : 0,
               .n = weight.shape()[0],
               .k = weight.shape()[1],
               .transpose_b = true,
               .relu = relu};
  const E* columns = weight.data();
  Buffer packed;
  if (packs_columns<E>(product)) {
    constexpr std::uint64_t number = std::uint64_t{1} << 41;  // above those of trimmed kernels
    packed = weight.buffer().form_if_reused({number, {product.n, product.k}}, [&] {
      detail::kernel_conversions.fetch_add(1, std::memory_order_relaxed);
      auto form = Buffer::allocate(static_cast<std::size_t>(packed_size<E>(product)) * sizeof(E));
      pack_columns(product, columns, reinterpret_cast<E*>(form.data()));
      return form;
    });
    product.packed_b = bool(packed);
    if (packed) columns = reinterpret_cast<const E*>(packed.data());
  }
  const bool ended = gemm(product, x.data(), columns, bias.data(), out.mutable_data());
  return ended ? out : eval(op::Relu{}, std::move(out));
}

}  // namespace cpu

template <class E>
BasicCpuArray<E> eval(const op::Linear& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& weight,
                      const BasicCpuArray<E>& bias) {
  return cpu::linear_layer(op.shape(x.shape(), weight.shape(), bias.shape()), x, weight, bias, false);
}

template <class E>
BasicCpuArray<E> eval(const op::LinearThen<op::Relu>& op, const BasicCpuArray<E>& x,
                      const BasicCpuArray<E>& weight, const BasicCpuArray<E>& bias) {
  return cpu::linear_layer(op.shape(x.shape(), weight.shape(), bias.shape()), x, weight, bias, true);
}

}  // namespace taut
