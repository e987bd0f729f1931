#pragma once
// Convolution: how it is computed. Of kernels, places that only ever meet padding are left out first; where
// images are as small as the kernel, a product of matrices does it.

#include <array>

#include "../op/conv2d.hpp"
#include "conv2d_onednn.hpp"
#include "conv2d_portable.hpp"
#include "conv2d_unrolled.hpp"
#include "movement.hpp"
#include "numbering.hpp"

namespace taut {

namespace cpu {

/// A convolution without the places of its kernels that only meet padding.
struct TrimmedConv {
  ConvGeometry whole, geometry;
  UsefulTaps rows, columns;
  Shape full;  ///< the kernels' shape

  TrimmedConv(const op::Conv2d& conv, const Shape& x, const Shape& kernels, const Shape& y)
      : whole(conv, x, kernels, y),
        geometry(whole),
        rows(useful_taps(x[2], kernels[2], y[2], conv.stride.h, conv.padding.h, conv.dilation.h)),
        columns(useful_taps(x[3], kernels[3], y[3], conv.stride.w, conv.padding.w, conv.dilation.w)),
        full(kernels) {
    geometry.kh = rows.stop - rows.first;
    geometry.kw = columns.stop - columns.first;
    geometry.padding.h -= rows.first * conv.dilation.h;
    geometry.padding.w -= columns.first * conv.dilation.w;
  }

  /// The kernels that are left of `kernels`, kept with them until they change.
  template <class E> BasicCpuArray<E> trim(const BasicCpuArray<E>& kernels) const {
    if (geometry.kernels() == full) return kernels;
    static Numbering<std::array<UsefulTaps, 2>> parts(std::uint64_t{1} << 40);  // above those of matrices
    const FormKey key{parts.of({rows, columns}), {full[0], full[1], full[2], full[3]}};
    return kernels.kept(key, geometry.kernels(), [&] {
      auto left = kernels;
      if (geometry.kh != full[2]) left = eval(op::Slice{2, rows.first, rows.stop}, left);
      if (geometry.kw != full[3]) left = eval(op::Slice{3, columns.first, columns.stop}, left);
      return left;
    });
  }

  /// The gradient by the kernels, given that by those that are left; 0 by the others.
  template <class E> BasicCpuArray<E> pad(BasicCpuArray<E> kernels) const {
    if (geometry.kw != full[3]) kernels = eval(op::Unslice{3, columns.first, 1, full[3]}, kernels);
    if (geometry.kh != full[2]) kernels = eval(op::Unslice{2, rows.first, 1, full[2]}, kernels);
    return kernels;
  }
};

template <class E>
BasicCpuArray<E> convolve(const TrimmedConv& conv, const BasicCpuArray<E>& x, const BasicCpuArray<E>& kernels,
                          const BasicCpuArray<E>* bias, const ConvEnding<E>& ending = {}) {
  const ConvGeometry& g = conv.geometry;
  if (unrolls(conv.whole)) return ending(conv2d_unrolled(conv.whole, x, kernels, bias));
  const auto left = conv.trim(kernels);
#if TAUT_HAS_ONEDNN
  if constexpr (std::is_same_v<E, float>)
    if (uses_onednn() && !g.empty()) return conv2d_onednn(g, x, left, bias, ending);
#endif
  auto y = BasicCpuArray<E>::uninitialized(g.y());
  conv2d_portable(g, x.data(), left.data(), bias ? bias->data() : nullptr, y.mutable_data());
  return ending(std::move(y));
}

}  // namespace cpu

template <class E>
BasicCpuArray<E> eval(const op::Conv2d& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& w) {
  const cpu::TrimmedConv conv(op, x.shape(), w.shape(), op.shape(x.shape(), w.shape()));
  return cpu::convolve<E>(conv, x, w, nullptr);
}

template <class E>
BasicCpuArray<E> eval(const op::Conv2d& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& w,
                      const BasicCpuArray<E>& bias) {
  const cpu::TrimmedConv conv(op, x.shape(), w.shape(), op.shape(x.shape(), w.shape(), bias.shape()));
  return cpu::convolve<E>(conv, x, w, &bias);
}

template <class E>
BasicCpuArray<E> eval(const op::Conv2dRelu& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& w,
                      const BasicCpuArray<E>& bias) {
  const cpu::TrimmedConv conv(op.conv, x.shape(), w.shape(), op.shape(x.shape(), w.shape(), bias.shape()));
  return cpu::convolve<E>(conv, x, w, &bias, {.relu = true});
}

template <class E>
BasicCpuArray<E> eval(const op::Conv2dRelu& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& w,
                      const BasicCpuArray<E>& bias, const BasicCpuArray<E>& residual) {
  const Shape shape = op.shape(x.shape(), w.shape(), bias.shape(), residual.shape());
  const cpu::TrimmedConv conv(op.conv, x.shape(), w.shape(), shape);
  return cpu::convolve<E>(conv, x, w, &bias, {&residual, true});
}

template <class E>
BasicCpuArray<E> eval(const op::Conv2dDataGradient& op, const BasicCpuArray<E>& g,
                      const BasicCpuArray<E>& w) {
  const Shape shape = op.shape(g.shape(), w.shape());
  const cpu::TrimmedConv conv(op.conv, shape, w.shape(), g.shape());
  if (cpu::unrolls(conv.whole)) return cpu::conv2d_data_gradient_unrolled(conv.whole, g, w);
  const auto left = conv.trim(w);
#if TAUT_HAS_ONEDNN
  if constexpr (std::is_same_v<E, float>)
    if (cpu::uses_onednn() && !conv.geometry.empty())
      return cpu::conv2d_data_gradient_onednn(conv.geometry, g, left);
#endif
  auto dx = BasicCpuArray<E>::uninitialized(shape);
  cpu::conv2d_data_gradient_portable(conv.geometry, g.data(), left.data(), dx.mutable_data());
  return dx;
}

template <class E>
BasicCpuArray<E> eval(const op::Conv2dWeightGradient& op, const BasicCpuArray<E>& g,
                      const BasicCpuArray<E>& x) {
  const Shape shape = op.shape(g.shape(), x.shape());
  const cpu::TrimmedConv conv(op.conv, x.shape(), shape, g.shape());
  if (cpu::unrolls(conv.whole)) return cpu::conv2d_weight_gradient_unrolled(conv.whole, g, x);
#if TAUT_HAS_ONEDNN
  if constexpr (std::is_same_v<E, float>)
    if (cpu::uses_onednn() && !conv.geometry.empty())
      return conv.pad(cpu::conv2d_weight_gradient_onednn(conv.geometry, g, x));
#endif
  auto dw = BasicCpuArray<E>::uninitialized(conv.geometry.kernels());
  cpu::conv2d_weight_gradient_portable(conv.geometry, g.data(), x.data(), dw.mutable_data());
  return conv.pad(std::move(dw));
}

}  // namespace taut
