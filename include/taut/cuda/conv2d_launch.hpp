#pragma once
// The launchers of convolutions, as both the tensors' side and the library's side see them.

#include "../cpu/conv_geometry.hpp"
#include "device.hpp"

namespace taut::cuda {

/// A convolution's numbers, which are the CPU's: none of its images or kernels is empty here. In memory,
/// images are [n, h, w, c] and kernels [out, kh, kw, c / groups].
using cpu::ConvGeometry;

/// y = conv(x, kernels), and + bias if that is not null and the library can add it on the way: returns
/// whether it did. For E float or bfloat16, like the following; sums are floats.
template <class E>
bool launch_conv2d(const ConvGeometry& geometry, const E* x, const E* kernels, const E* bias, E* y,
                   Stream stream);

/// dx = the gradient of the convolution by its images, for dy of the shape of y.
template <class E>
void launch_conv2d_data_gradient(const ConvGeometry& geometry, const E* dy, const E* kernels, E* dx,
                                 Stream stream);

/// dw = the gradient of the convolution by its kernels.
template <class E>
void launch_conv2d_weight_gradient(const ConvGeometry& geometry, const E* dy, const E* x, E* dw,
                                   Stream stream);

}  // namespace taut::cuda
