#pragma once
// The launchers of average pooling and upsampling, as both the tensors' side and the kernels' side see them.

#include "../op/resample2d.hpp"
#include "device.hpp"

namespace taut::cuda {

/// Images [n, h, w, channels], with the channels last, and the size that they are resampled to.
struct Resampling {
  std::int64_t n, channels, h, w, to_h, to_w;
};

/// Writes the resampled images to y, for E float or bfloat16. Defined for Taut's operators; `taps(…).first`
/// and where taps end must not decrease with the place.
template <op::ResamplingOp Op, class E>
void launch_resample(const Op& op, const Resampling& images, const E* x, E* y, Stream stream);

/// The adjoint: writes what each pixel gets of g, whose size is the one resampled to.
template <op::ResamplingOp Op, class E>
void launch_resample_adjoint(const Op& op, const Resampling& images, const E* g, E* to, Stream stream);

}  // namespace taut::cuda
