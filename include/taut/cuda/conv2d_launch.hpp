#pragma once
// The launchers of convolutions, as both the tensors' side and the library's side see them.

#include "../cpu/conv_geometry.hpp"
#include "device.hpp"

namespace taut::cuda {

/// A convolution's numbers, which are the CPU's: none of its images or kernels is empty here. In memory,
/// images are [n, h, w, c] and kernels [out, kh, kw, c / groups].
using cpu::ConvGeometry;

/// What follows a convolution in the same pass: + bias, of an element for each output channel, and +
/// residual, of the shape and layout of y, where they are not null; then ReLU, if wanted, which keeps NaN.
template <class E> struct ConvEnding {
  const E* bias = nullptr;
  const E* residual = nullptr;
  bool relu = false;

  bool empty() const { return bias == nullptr && residual == nullptr && !relu; }
};

/// y = conv(x, kernels) with the ending. Returns false, with y undefined, where the library has no way to do
/// both in one pass, which for an empty ending is a `DeviceError` instead. For E float or bfloat16, like the
/// following; sums are floats.
template <class E>
bool launch_conv2d(const ConvGeometry& geometry, const E* x, const E* kernels, const ConvEnding<E>& ending,
                   E* y, Stream stream);

/// dx = the gradient of the convolution by its images, for dy of the shape of y.
template <class E>
void launch_conv2d_data_gradient(const ConvGeometry& geometry, const E* dy, const E* kernels, E* dx,
                                 Stream stream);

/// dw = the gradient of the convolution by its kernels.
template <class E>
void launch_conv2d_weight_gradient(const ConvGeometry& geometry, const E* dy, const E* x, E* dw,
                                   Stream stream);

}  // namespace taut::cuda
