#pragma once
// Movement operators on dense arrays: a new shape on the same buffer, or one strided copy.

#include "../op/movement.hpp"
#include "array.hpp"
#include "strided.hpp"

namespace taut {

template <class X>
requires cpu::SameArrays<X>
auto eval(const op::Reshape& op, X&& x) -> std::remove_cvref_t<X> {
  const Shape shape = op.shape(x.shape());
  return std::forward<X>(x).with_shape(shape);
}

template <class E> BasicCpuArray<E> eval(const op::Permute& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  const auto dense = cpu::dense_strides(x.shape());
  cpu::Strides in{};
  for (int i = 0; i < x.shape().rank(); ++i)
    in[static_cast<std::size_t>(i)] =
        dense[static_cast<std::size_t>(normalize_axis(op.name, op.order.items[i], x.shape()))];
  cpu::copy_strided(out.shape(), x.data(), in, out.mutable_data(), cpu::dense_strides(out.shape()));
  return out;
}

template <class E> BasicCpuArray<E> eval(const op::BroadcastTo& op, const BasicCpuArray<E>& x) {
  const Shape shape = op.shape(x.shape());
  if (shape == x.shape()) return x;
  auto out = BasicCpuArray<E>::uninitialized(shape);
  const auto dense = cpu::dense_strides(x.shape());
  const int added = shape.rank() - x.shape().rank();
  cpu::Strides in{};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (x.shape()[i] != 1) in[static_cast<std::size_t>(i + added)] = dense[static_cast<std::size_t>(i)];
  cpu::copy_strided(shape, x.data(), in, out.mutable_data(), cpu::dense_strides(shape));
  return out;
}

template <class E> BasicCpuArray<E> eval(const op::Slice& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  auto in = cpu::dense_strides(x.shape());
  auto& stride = in[static_cast<std::size_t>(normalize_axis(op.name, op.axis, x.shape()))];
  const auto offset = op.start * stride;
  stride *= op.step;
  cpu::copy_strided(out.shape(), x.data() + offset, in, out.mutable_data(), cpu::dense_strides(out.shape()));
  return out;
}

template <class E> BasicCpuArray<E> eval(const op::Unslice& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::zeros(op.shape(x.shape()));
  auto to = cpu::dense_strides(out.shape());
  auto& stride = to[static_cast<std::size_t>(normalize_axis(op.name, op.axis, x.shape()))];
  const auto offset = op.start * stride;
  stride *= op.step;
  cpu::copy_strided(x.shape(), x.data(), cpu::dense_strides(x.shape()), out.mutable_data() + offset, to);
  return out;
}

template <class E, std::same_as<BasicCpuArray<E>>... Xs>
BasicCpuArray<E> eval(const op::Concat& op, const BasicCpuArray<E>& first, const Xs&... rest) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(first.shape(), rest.shape()...));
  const auto to = cpu::dense_strides(out.shape());
  const int axis = normalize_axis(op.name, op.axis, out.shape());
  E* at = out.mutable_data();
  const auto append = [&](const BasicCpuArray<E>& x) {
    cpu::copy_strided(x.shape(), x.data(), cpu::dense_strides(x.shape()), at, to);
    at += x.shape()[axis] * to[static_cast<std::size_t>(axis)];
  };
  append(first);
  (append(rest), ...);
  return out;
}

}  // namespace taut
