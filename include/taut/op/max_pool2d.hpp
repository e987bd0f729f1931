#pragma once
// Max pooling, and the two operators that its derivatives are made of.

#include <array>
#include <string_view>

#include "conv2d.hpp"

namespace taut {

namespace op {

/// The largest element of each window of images x [n, c, h, w]: [n, c, h', w'], with the extents of a
/// convolution. Windows reach into the padding, which never wins; NaN does. The gradient goes to the first of
/// equal elements in row-major order, as PyTorch's.
struct MaxPool2d {
  static constexpr std::string_view name = "max_pool2d";
  HeightWidth kernel = 2;
  HeightWidth stride = 0;  ///< 0: the kernel's size
  HeightWidth padding = 0, dilation = 1;

  constexpr HeightWidth steps() const {
    return {stride.h ? stride.h : kernel.h, stride.w ? stride.w : kernel.w};
  }
  constexpr Shape shape(const Shape& x) const {
    require(x.rank() == 4, "max_pool2d: takes images [n, c, h, w]", x);
    require(kernel.h <= Conv2d::most && kernel.w <= Conv2d::most,
            "max_pool2d: the kernel is larger than 2^20", x);
    require(kernel.h >= 1 && kernel.w >= 1 && stride.h >= 0 && stride.w >= 0 && dilation.h >= 1 &&
                dilation.w >= 1,
            "max_pool2d: kernel, stride and dilation must be at least 1", x);
    require(0 <= padding.h && 2 * padding.h <= kernel.h && 0 <= padding.w && 2 * padding.w <= kernel.w,
            "max_pool2d: the padding must be at most half of the kernel", x);
    const auto h = Conv2d::extent(x[2], kernel.h, steps().h, padding.h, dilation.h);
    const auto w = Conv2d::extent(x[3], kernel.w, steps().w, padding.w, dilation.w);
    require(h >= 1 && w >= 1, "max_pool2d: the kernel is larger than the padded image", x);
    require(all_meet(x[2], kernel.h, steps().h, padding.h, dilation.h, h) &&
                all_meet(x[3], kernel.w, steps().w, padding.w, dilation.w, w),
            "max_pool2d: a window has nothing but padding", x);
    return {x[0], x[1], h, w};
  }
  constexpr std::int64_t flops(const Shape& x) const { return shape(x).size() * kernel.h * kernel.w; }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T& x) const;

 private:
  /// Whether each of the windows along an axis has an element of the image.
  static constexpr bool all_meet(std::int64_t image, std::int64_t size, std::int64_t step, std::int64_t pad,
                                 std::int64_t spread, std::int64_t windows) {
    for (std::int64_t i = 0; i < windows; ++i) {
      bool meets = false;
      for (std::int64_t k = 0; k < size && !meets; ++k) {
        const auto at = i * step + k * spread - pad;
        meets = 0 <= at && at < image;
      }
      if (!meets) return false;
    }
    return true;
  }
};

/// The element of v at the place where `MaxPool2d` finds the largest of x: v and x [n, c, h, w]:
/// [n, c, h', w'].
struct MaxPool2dPick {
  static constexpr std::string_view name = "max_pool2d_pick";
  static constexpr std::uint32_t constant_operands = 2;  // the place of the largest does not change with x
  MaxPool2d pool;

  constexpr Shape shape(const Shape& v, const Shape& x) const {
    require(v == x, "max_pool2d_pick: takes two tensors of one shape", v, x);
    return pool.shape(x);
  }
  constexpr std::int64_t flops(const Shape&, const Shape& x) const { return pool.flops(x); }
  template <AnyTensor T> auto pullback(Needs<2>, const T&, const T&, const T& x) const;
};

/// Zeros of the shape of x [n, c, h, w] to which each element of g [n, c, h', w'] is added at the place where
/// `MaxPool2d` finds the largest of x: its gradient, and the adjoint of `MaxPool2dPick`.
struct MaxPool2dGradient {
  static constexpr std::string_view name = "max_pool2d_gradient";
  static constexpr std::uint32_t constant_operands = 2;
  MaxPool2d pool;

  constexpr Shape shape(const Shape& g, const Shape& x) const {
    require(pool.shape(x) == g, "max_pool2d_gradient: the gradient is not of the result's shape", g, x);
    return x;
  }
  constexpr std::int64_t flops(const Shape&, const Shape& x) const { return pool.flops(x); }
  template <AnyTensor T> auto pullback(Needs<2>, const T&, const T&, const T& x) const {
    return [pick = MaxPool2dPick{pool}, x](const T& v) { return std::array<T, 2>{eval(pick, v, x), T{}}; };
  }
};

template <AnyTensor T> auto MaxPool2d::pullback(Needs<1>, const T&, const T& x) const {
  return [gradient = MaxPool2dGradient{*this}, x](const T& g) { return eval(gradient, g, x); };
}

template <AnyTensor T> auto MaxPool2dPick::pullback(Needs<2>, const T&, const T&, const T& x) const {
  return [gradient = MaxPool2dGradient{pool}, x](const T& g) {
    return std::array<T, 2>{eval(gradient, g, x), T{}};
  };
}

}  // namespace op

/// The largest element of each window of images x [n, c, h, w]: `max_pool2d(x, {.kernel = 3, .stride = 2})`.
/// The stride is the kernel's size unless given. Throws `ShapeError` if the windows do not fit.
template <AnyTensor X> constexpr auto max_pool2d(const X& x, op::MaxPool2d options = {}) {
  return eval(options, x);
}

}  // namespace taut
