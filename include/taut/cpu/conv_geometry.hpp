#pragma once
// The numbers of a convolution in one place, as the engines take them.

#include "../op/conv2d.hpp"

namespace taut::cpu {

/// A convolution of images [n, c, h, w] with kernels [out, c / groups, kh, kw] to [n, out, oh, ow].
struct ConvGeometry {
  std::int64_t n = 0, c = 0, h = 0, w = 0, out = 0, oh = 0, ow = 0, kh = 0, kw = 0, groups = 1;
  HeightWidth stride, padding, dilation;

  ConvGeometry() = default;
  ConvGeometry(const op::Conv2d& conv, const Shape& x, const Shape& kernels, const Shape& y)
      : n(x[0]),
        c(x[1]),
        h(x[2]),
        w(x[3]),
        out(y[1]),
        oh(y[2]),
        ow(y[3]),
        kh(kernels[2]),
        kw(kernels[3]),
        groups(conv.groups),
        stride(conv.stride),
        padding(conv.padding),
        dilation(conv.dilation) {}

  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;

  Shape x() const { return {n, c, h, w}; }
  Shape y() const { return {n, out, oh, ow}; }
  Shape kernels() const { return {out, c / groups, kh, kw}; }
  /// Whether there is nothing to multiply.
  bool empty() const { return x().size() == 0 || y().size() == 0; }
};

/// The places of a kernel along an axis that meet the image anywhere: from `first` to before `stop`.
struct UsefulTaps {
  std::int64_t first, stop;

  friend bool operator==(const UsefulTaps&, const UsefulTaps&) = default;
};

/// Of `taps` places of a kernel, those that do not only meet padding: of a kernel of 3 with padding 1 the one
/// in the middle, where the image has one pixel.
constexpr UsefulTaps useful_taps(std::int64_t image, std::int64_t taps, std::int64_t places,
                                 std::int64_t stride, std::int64_t padding, std::int64_t dilation) {
  const auto meets = [&](std::int64_t tap) {
    for (std::int64_t i = 0; i < places; ++i) {
      const auto at = i * stride + tap * dilation - padding;
      if (0 <= at && at < image) return true;
    }
    return false;
  };
  UsefulTaps useful{0, taps};
  while (useful.first + 1 < useful.stop && !meets(useful.first) && (useful.first + 1) * dilation <= padding)
    ++useful.first;
  // oneDNN takes no padding at the end that is as negative as a stride.
  const auto padding_after = [&](std::int64_t stop) {
    return (places - 1) * stride + dilation * (stop - 1) + 1 - image - padding;
  };
  while (useful.first + 1 < useful.stop && !meets(useful.stop - 1) &&
         padding_after(useful.stop - 1) > -stride)
    --useful.stop;
  return useful;
}

}  // namespace taut::cpu
