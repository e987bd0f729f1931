#pragma once
// Matrix products on the device.

#include "../op/matmul.hpp"
#include "elementwise.hpp"
#include "matmul_launch.hpp"
#include "movement.hpp"

namespace taut {

namespace cuda {

/// Functions that cuBLASLt can apply to a product.
template <class F> inline constexpr Activation activation_of = Activation::none;
template <> inline constexpr Activation activation_of<op::Relu> = Activation::relu;
template <> inline constexpr Activation activation_of<op::GeluTanh> = Activation::gelu_tanh;

/// What a linear layer with the given result multiplies.
inline Product linear_product(const Shape& result, const Shape& weight) {
  return {.m = result[-1] > 0 ? result.size() / result[-1] : 0,
          .n = weight[0],
          .k = weight[1],
          .transpose_b = true};
}

/// The product of the given result shape; an empty sum is the bias, or 0. A bias that cuBLASLt cannot add is
/// a pass of its own.
template <class E>
BasicCudaTensor<E> multiply(const Product& product, const Shape& shape, const BasicCudaTensor<E>& a,
                            const BasicCudaTensor<E>& b, const BasicCudaTensor<E>* bias) {
  if (product.k == 0 && bias != nullptr) return eval(op::BroadcastTo{shape}, *bias);
  if (product.k == 0) return BasicCudaTensor<E>::zeros(shape);
  auto out = BasicCudaTensor<E>::uninitialized(shape);
  const auto launch = [&](const E* added) {
    return launch_matmul<E>(product, a.data(), b.data(), added, out.mutable_data(), current_stream());
  };
  if (shape.size() == 0 || launch(bias ? bias->data() : nullptr)) return out;
  launch(nullptr);
  return eval(op::Add{}, std::move(out), *bias);
}

}  // namespace cuda

template <class E>
BasicCudaTensor<E> eval(const op::Matmul& op, const BasicCudaTensor<E>& a, const BasicCudaTensor<E>& b) {
  const Shape shape = op.shape(a.shape(), b.shape());
  cuda::Product product{.m = shape[-2],
                        .n = shape[-1],
                        .k = a.shape()[op.transpose_a ? -2 : -1],
                        .transpose_a = op.transpose_a,
                        .transpose_b = op.transpose_b};
  const Shape batch = op.batch_of(shape);
  if (b.shape().rank() == 2 && !op.transpose_a) {
    product.m *= batch.size();  // one matrix for the whole batch: one product over all rows
    return cuda::multiply<E>(product, shape, a.dense(), b.dense(), nullptr);
  }
  product.batch = batch.size();
  // A batch is evenly spaced if an operand has all of it or none; else it is repeated first.
  const auto spread = [&](const BasicCudaTensor<E>& x, std::int64_t& stride) {
    const Shape own = op.batch_of(x.shape());
    if (own.size() == 1) return stride = 0, x.dense();
    stride = x.shape()[-2] * x.shape()[-1];
    if (own.size() == batch.size()) return x.dense();
    Shape full = batch;
    full.push_back(x.shape()[-2]);
    full.push_back(x.shape()[-1]);
    return eval(op::BroadcastTo{full}, x).dense();
  };
  const auto left = spread(a, product.stride_a), right = spread(b, product.stride_b);
  return cuda::multiply<E>(product, shape, left, right, nullptr);
}

template <class E>
BasicCudaTensor<E> eval(const op::Linear& op, const BasicCudaTensor<E>& x, const BasicCudaTensor<E>& weight,
                        const BasicCudaTensor<E>& bias) {
  const Shape shape = op.shape(x.shape(), weight.shape(), bias.shape());
  return cuda::multiply(cuda::linear_product(shape, weight.shape()), shape, x.dense(), weight, &bias);
}

template <class E, class F>
requires(cuda::activation_of<F> != cuda::Activation::none)
    BasicCudaTensor<E> eval(const op::LinearThen<F>& op, const BasicCudaTensor<E>& x,
                            const BasicCudaTensor<E>& weight, const BasicCudaTensor<E>& bias) {
  const Shape shape = op.shape(x.shape(), weight.shape(), bias.shape());
  auto product = cuda::linear_product(shape, weight.shape());
  if (shape.size() == 0 || product.k == 0) return op.decompose(x, weight, bias);
  product.activation = cuda::activation_of<F>;
  const auto rows = x.dense();
  {
    auto out = BasicCudaTensor<E>::uninitialized(shape);
    if (cuda::launch_matmul<E>(product, rows.data(), weight.data(), bias.data(), out.mutable_data(),
                               cuda::current_stream()))
      return out;
  }
  return op.decompose(rows, weight, bias);
}

}  // namespace taut
