#pragma once
// Average pooling and upsampling: linear maps of images that treat rows and columns alike. Each states, for
// one axis, which elements a place of the result takes and with which weights; the maps and their adjoints
// follow.

#include <algorithm>
#include <string_view>

#include "conv2d.hpp"

namespace taut {

namespace op {

/// What one place of the result takes along an axis: up to `count` elements from `first` on. The weight of
/// the i-th is `weight` for all but the last, which has `last`.
struct Taps {
  std::int64_t first = 0, count = 0;
  double weight = 0, last = 0;

  static constexpr Taps mean(std::int64_t first, std::int64_t stop, std::int64_t divisor) {
    const double weight = 1.0 / static_cast<double>(divisor);
    return {first, stop - first, weight, weight};
  }
};

/// A separable linear map of images: `taps(axis, from, to, i)` is what place i of axis 0 (rows) or 1
/// (columns) of the result takes, of `from` elements to `to`.
template <class Op>
concept ResamplingOp = requires(const Op& op, std::int64_t n) {
  { op.taps(0, n, n, n) } -> std::same_as<Taps>;
};

template <ResamplingOp Op> struct ResampleGradient;

/// The rule that all of them have: a linear map's gradient is its adjoint.
template <ResamplingOp Op, AnyTensor T> auto resample_pullback(const Op& op, const T& x) {
  return [gradient = ResampleGradient<Op>{op, {x.shape()[2], x.shape()[3]}}](const T& g) {
    return eval(gradient, g);
  };
}

/// The adjoint of a resampling of images of the given size: each element of g is spread over those that it
/// was made of.
template <ResamplingOp Op> struct ResampleGradient {
  static constexpr std::string_view name = Op::gradient_name;
  Op op;
  HeightWidth image;

  constexpr Shape shape(const Shape& g) const {
    require(g.rank() == 4, name, "takes gradients [n, c, h, w]", g);
    const Shape x{g[0], g[1], image.h, image.w};
    require(op.shape(x) == g, name, "the gradient is not of the result's shape", g, x);
    return x;
  }
  constexpr std::int64_t flops(const Shape& g) const { return 2 * g.size(); }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T&) const {
    return [op = op](const T& v) { return eval(op, v); };
  }
};

/// The mean of each window of images x [n, c, h, w]: [n, c, h', w'], with the extents of a convolution.
struct AvgPool2d {
  static constexpr std::string_view name = "avg_pool2d", gradient_name = "avg_pool2d_gradient";
  HeightWidth kernel = 2;
  HeightWidth stride = 0;  ///< 0: the kernel's size
  HeightWidth padding = 0;
  bool count_include_pad = true;  ///< whether padding counts as zeros, or not at all

  constexpr HeightWidth steps() const {
    return {stride.h ? stride.h : kernel.h, stride.w ? stride.w : kernel.w};
  }
  constexpr Shape shape(const Shape& x) const {
    require(x.rank() == 4, "avg_pool2d: takes images [n, c, h, w]", x);
    require(kernel.h <= Conv2d::most && kernel.w <= Conv2d::most,
            "avg_pool2d: the kernel is larger than 2^20", x);
    require(kernel.h >= 1 && kernel.w >= 1 && stride.h >= 0 && stride.w >= 0,
            "avg_pool2d: kernel and stride must be at least 1", x);
    require(0 <= padding.h && 2 * padding.h <= kernel.h && 0 <= padding.w && 2 * padding.w <= kernel.w,
            "avg_pool2d: the padding must be at most half of the kernel", x);
    const auto h = Conv2d::extent(x[2], kernel.h, steps().h, padding.h, 1);
    const auto w = Conv2d::extent(x[3], kernel.w, steps().w, padding.w, 1);
    require(h >= 1 && w >= 1, "avg_pool2d: the kernel is larger than the padded image", x);
    return {x[0], x[1], h, w};
  }
  constexpr std::int64_t flops(const Shape& x) const { return shape(x).size() * kernel.h * kernel.w; }
  constexpr Taps taps(int axis, std::int64_t from, std::int64_t, std::int64_t i) const {
    const auto size = axis == 0 ? kernel.h : kernel.w, pad = axis == 0 ? padding.h : padding.w;
    const auto begin = i * (axis == 0 ? steps().h : steps().w) - pad;
    const auto first = std::max<std::int64_t>(begin, 0), stop = std::min(begin + size, from);
    return Taps::mean(first, stop, count_include_pad ? size : stop - first);
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    return resample_pullback(*this, x);
  }
};

/// The means of windows that divide images x [n, c, h, w] as evenly as can be: [n, c, size.h, size.w]. Window
/// i of an axis is from ⌊i h / h'⌋ to ⌈(i + 1) h / h'⌉, as in PyTorch.
struct AdaptiveAvgPool2d {
  static constexpr std::string_view name = "adaptive_avg_pool2d",
                                    gradient_name = "adaptive_avg_pool2d_gradient";
  HeightWidth size = 1;

  constexpr Shape shape(const Shape& x) const {
    require(x.rank() == 4, "adaptive_avg_pool2d: takes images [n, c, h, w]", x);
    require(x[2] >= 1 && x[3] >= 1 && size.h >= 1 && size.w >= 1,
            "adaptive_avg_pool2d: images and results need at least one row and one column", x);
    require(size.h <= Conv2d::most && size.w <= Conv2d::most,
            "adaptive_avg_pool2d: the result is larger than 2^20", x);
    return {x[0], x[1], size.h, size.w};
  }
  constexpr std::int64_t flops(const Shape& x) const { return x.size(); }
  constexpr Taps taps(int, std::int64_t from, std::int64_t to, std::int64_t i) const {
    const auto first = i * from / to, stop = ((i + 1) * from + to - 1) / to;
    return Taps::mean(first, stop, stop - first);
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    return resample_pullback(*this, x);
  }
};

/// Images x [n, c, h, w] enlarged by whole numbers: [n, c, h·scale, w·scale]. Places of the result take the
/// nearest element, or weigh the two nearest along each axis by their distance, pixels being squares whose
/// centres are compared: PyTorch's `interpolate` with `align_corners=False`.
struct Upsample2d {
  static constexpr std::string_view name = "upsample2d", gradient_name = "upsample2d_gradient";
  HeightWidth scale = 2;
  bool bilinear = false;

  constexpr Shape shape(const Shape& x) const {
    require(x.rank() == 4, "upsample2d: takes images [n, c, h, w]", x);
    require(scale.h >= 1 && scale.w >= 1 && scale.h <= Conv2d::most && scale.w <= Conv2d::most,
            "upsample2d: the scale must be from 1 to 2^20", x);
    require(x[2] >= 1 && x[3] >= 1, "upsample2d: the images have no pixels", x);
    return {x[0], x[1], x[2] * scale.h, x[3] * scale.w};
  }
  constexpr std::int64_t flops(const Shape& x) const { return (bilinear ? 4 : 0) * shape(x).size(); }
  constexpr Taps taps(int axis, std::int64_t from, std::int64_t, std::int64_t i) const {
    const auto factor = axis == 0 ? scale.h : scale.w;
    if (!bilinear) return {i / factor, 1, 1, 1};
    const double centre = std::max(0.0, (static_cast<double>(i) + 0.5) / static_cast<double>(factor) - 0.5);
    const auto first = static_cast<std::int64_t>(centre);
    if (first + 1 >= from) return {from - 1, 1, 1, 1};
    const double beyond = centre - static_cast<double>(first);
    return {first, 2, 1 - beyond, beyond};
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const {
    return resample_pullback(*this, x);
  }
};

}  // namespace op

/// The mean of each window of images x [n, c, h, w]: [n, c, h', w'] with h' = ⌊(h + 2 padding - kernel) /
/// stride⌋ + 1, as PyTorch's `avg_pool2d`. The stride is the kernel's size unless given; padding counts as
/// zeros unless
/// `.count_include_pad = false`. Throws `ShapeError` if the windows do not fit.
template <AnyTensor X> constexpr auto avg_pool2d(const X& x, op::AvgPool2d options = {}) {
  return eval(options, x);
}

/// Images x [n, c, h, w] averaged to [n, c, size.h, size.w], over windows that divide them as evenly as can
/// be, as PyTorch's `adaptive_avg_pool2d`. Throws `ShapeError` if images or result have no pixels.
template <AnyTensor X> constexpr auto adaptive_avg_pool2d(const X& x, HeightWidth size) {
  return eval(op::AdaptiveAvgPool2d{size}, x);
}

/// The mean over the pixels of each channel of images x [n, c, h, w]: [n, c].
template <AnyTensor X> constexpr auto global_avg_pool2d(const X& x) {
  return reshape(adaptive_avg_pool2d(x, 1), {x.shape()[0], x.shape()[1]});
}

/// Images x [n, c, h, w] with each pixel repeated: [n, c, h · scale.h, w · scale.w], as PyTorch's
/// `interpolate(mode="nearest")`. Throws `ShapeError` if the scale is below 1.
template <AnyTensor X> constexpr auto upsample_nearest2d(const X& x, HeightWidth scale) {
  return eval(op::Upsample2d{scale, false}, x);
}

/// Images x [n, c, h, w] enlarged to [n, c, h · scale.h, w · scale.w], linear in each axis between the
/// pixels' centres and constant beyond the outermost, as PyTorch's `interpolate(mode="bilinear",
/// align_corners=False)`.
template <AnyTensor X> constexpr auto upsample_bilinear2d(const X& x, HeightWidth scale) {
  return eval(op::Upsample2d{scale, true}, x);
}

}  // namespace taut
