#pragma once
// Movement operators on the device: a new shape on the same memory, or one copy between strided views. The
// results of slicing and joining images keep their layout.

#include "../op/movement.hpp"
#include "tensor.hpp"

namespace taut {

template <class X>
requires cuda::SameTensors<X>
auto eval(const op::Reshape& op, X&& x) -> std::remove_cvref_t<X> {
  const Shape shape = op.shape(x.shape());
  return std::forward<X>(x).with_shape(shape);
}

template <class E> BasicCudaTensor<E> eval(const op::Permute& op, const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape()));
  const cuda::Strides own(x.shape(), x.layout());
  cuda::Strides from;
  for (int i = 0; i < x.shape().rank(); ++i)
    from[i] = own[normalize_axis(op.name, op.order.items[i], x.shape())];
  cuda::copy_strided(out.shape(), out.layout(), x.data(), from, out.mutable_data(),
                     cuda::Strides(out.shape(), out.layout()));
  return out;
}

template <class E> BasicCudaTensor<E> eval(const op::BroadcastTo& op, const BasicCudaTensor<E>& x) {
  const Shape shape = op.shape(x.shape());
  if (shape == x.shape()) return x;
  auto out = BasicCudaTensor<E>::uninitialized(shape, x.layout());
  const cuda::Strides own(x.shape(), x.layout());
  const int added = shape.rank() - x.shape().rank();
  cuda::Strides from;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (x.shape()[i] != 1) from[i + added] = own[i];
  cuda::copy_strided(shape, out.layout(), x.data(), from, out.mutable_data(),
                     cuda::Strides(shape, out.layout()));
  return out;
}

template <class E> BasicCudaTensor<E> eval(const op::Slice& op, const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape()), x.layout());
  cuda::Strides from(x.shape(), x.layout());
  auto& stride = from[normalize_axis(op.name, op.axis, x.shape())];
  const auto offset = op.start * stride;
  stride *= op.step;
  cuda::copy_strided(out.shape(), out.layout(), x.data() + offset, from, out.mutable_data(),
                     cuda::Strides(out.shape(), out.layout()));
  return out;
}

template <class E> BasicCudaTensor<E> eval(const op::Unslice& op, const BasicCudaTensor<E>& x) {
  auto out = BasicCudaTensor<E>::zeros(op.shape(x.shape()), x.layout());
  cuda::Strides to(out.shape(), out.layout());
  auto& stride = to[normalize_axis(op.name, op.axis, x.shape())];
  const auto offset = op.start * stride;
  stride *= op.step;
  cuda::copy_strided(x.shape(), x.layout(), x.data(), cuda::Strides(x.shape(), x.layout()),
                     out.mutable_data() + offset, to);
  return out;
}

template <class E, std::same_as<BasicCudaTensor<E>>... Xs>
BasicCudaTensor<E> eval(const op::Concat& op, const BasicCudaTensor<E>& first, const Xs&... rest) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(first.shape(), rest.shape()...), first.layout());
  const cuda::Strides to(out.shape(), out.layout());
  const int axis = normalize_axis(op.name, op.axis, out.shape());
  E* at = out.mutable_data();
  const auto append = [&](const BasicCudaTensor<E>& x) {
    cuda::copy_strided(x.shape(), out.layout(), x.data(), cuda::Strides(x.shape(), x.layout()), at, to);
    at += x.shape()[axis] * to[axis];
  };
  append(first);
  (append(rest), ...);
  return out;
}

}  // namespace taut
