#pragma once
// Two-dimensional convolution, and the two operators that its gradients are: the three are closed under
// differentiation, since each is linear in each operand.

#include <algorithm>
#include <array>
#include <string_view>

#include "reduce.hpp"
#include "unary.hpp"

namespace taut {

/// A number for the height and one for the width of an image; a single number stands for both.
struct HeightWidth {
  std::int64_t h = 0, w = 0;

  constexpr HeightWidth() = default;
  constexpr HeightWidth(std::int64_t both) : h(both), w(both) {}
  constexpr HeightWidth(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  constexpr bool operator==(const HeightWidth&) const = default;
};

namespace op {

/// The cross-correlation of images x [n, c, h, w] with kernels w [out, c / groups, kh, kw], and a bias [out]
/// if it is given: [n, out, h', w'] with
///
///     y[n, o, i, j] = b[o] + Σ x[n, c, i·stride + k·dilation - padding, j·… + l·… - …] w[o, c, k, l]
///
/// over the channels c of o's group and the kernel's places k, l, x being 0 outside of the image; as
/// PyTorch's `conv2d`. The height h' is ⌊(h + 2 padding - dilation (kh - 1) - 1) / stride⌋ + 1.
struct Conv2d {
  static constexpr std::string_view name = "conv2d";
  HeightWidth stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;

  /// The largest option: so no position overflows.
  static constexpr std::int64_t most = std::int64_t{1} << 20;

  constexpr Shape shape(const Shape& x, const Shape& w) const {
    require(x.rank() == 4 && w.rank() == 4,
            "conv2d: takes images [n, c, h, w] and kernels [out, c / groups, kh, kw]", x, w);
    require(std::max({stride.h, stride.w, padding.h, padding.w, dilation.h, dilation.w}) <= most,
            "conv2d: stride, padding or dilation is larger than 2^20", x, w);
    require(stride.h >= 1 && stride.w >= 1, "conv2d: the stride must be at least 1", x, w);
    require(dilation.h >= 1 && dilation.w >= 1, "conv2d: the dilation must be at least 1", x, w);
    require(padding.h >= 0 && padding.w >= 0, "conv2d: the padding must be at least 0", x, w);
    require(groups >= 1 && w[0] % groups == 0,
            "conv2d: the number of groups must divide the number of kernels", x, w);
    require(x[1] == w[1] * groups, "conv2d: the images' channels are not the kernels' times the groups", x,
            w);
    require(w[2] >= 1 && w[3] >= 1, "conv2d: the kernel is empty", x, w);
    const auto h = extent(x[2], w[2], stride.h, padding.h, dilation.h);
    const auto width = extent(x[3], w[3], stride.w, padding.w, dilation.w);
    require(h >= 1 && width >= 1, "conv2d: the kernel is larger than the padded image", x, w);
    return {x[0], w[0], h, width};
  }
  constexpr Shape shape(const Shape& x, const Shape& w, const Shape& bias) const {
    const Shape to = shape(x, w);
    require(bias == Shape{w[0]}, "conv2d: the bias must have one element for each kernel", bias, w);
    return to;
  }
  constexpr std::int64_t flops(const Shape& x, const Shape& w) const {
    return 2 * shape(x, w).size() * w[1] * w[2] * w[3];
  }
  constexpr std::int64_t flops(const Shape& x, const Shape& w, const Shape& bias) const {
    return flops(x, w) + shape(x, w, bias).size();
  }
  template <std::same_as<DenseSize>... Bias>
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize& x, const DenseSize& w,
                               const Bias&... bias) const {
    return result.bytes() + touched(x, result.shape, w.shape) + (w.bytes() + ... + bias.bytes());
  }
  /// The bytes of the images that a kernel of the given shape meets: all of them, unless the stride leaves
  /// some out.
  static constexpr std::int64_t touched(const DenseSize& x, const Shape& y, const Shape& w) {
    return std::min(x.bytes(), x.element_size * x.shape[0] * x.shape[1] * y[2] * y[3] * w[2] * w[3]);
  }

  /// How many places a kernel of `size` takes along an axis of an image.
  static constexpr std::int64_t extent(std::int64_t image, std::int64_t size, std::int64_t step,
                                       std::int64_t pad, std::int64_t spread) {
    const auto room = image + 2 * pad - spread * (size - 1) - 1;
    return room < 0 ? 0 : room / step + 1;
  }

  template <AnyTensor T> auto pullback(Needs<2> needs, const T&, const T& x, const T& w) const;
  template <AnyTensor T> auto pullback(Needs<3> needs, const T&, const T& x, const T& w, const T& bias) const;
};

/// The gradient of `Conv2d` by its images, which have the given height and width: g [n, out, h', w'] and
/// w [out, c / groups, kh, kw]: [n, c, h, w]. It is the convolution's adjoint, and so a transposed
/// convolution.
struct Conv2dDataGradient {
  static constexpr std::string_view name = "conv2d_data_gradient";
  Conv2d conv;
  HeightWidth image;

  constexpr Shape shape(const Shape& g, const Shape& w) const {
    require(g.rank() == 4 && w.rank() == 4,
            "conv2d_data_gradient: takes gradients [n, out, h, w] and kernels [out, c / groups, kh, kw]", g,
            w);
    const Shape x{g[0], w[1] * conv.groups, image.h, image.w};
    require(conv.shape(x, w) == g, "conv2d_data_gradient: the gradient is not of the convolution's shape", g,
            w);
    return x;
  }
  constexpr std::int64_t flops(const Shape& g, const Shape& w) const {
    return 2 * g.size() * w[1] * w[2] * w[3];
  }
  template <AnyTensor T> auto pullback(Needs<2> needs, const T&, const T& g, const T& w) const;
};

/// The gradient of `Conv2d` by its kernels, which have the given height and width: g [n, out, h', w'] and
/// x [n, c, h, w]: [out, c / groups, kh, kw].
struct Conv2dWeightGradient {
  static constexpr std::string_view name = "conv2d_weight_gradient";
  Conv2d conv;
  HeightWidth kernel;

  constexpr Shape shape(const Shape& g, const Shape& x) const {
    require(g.rank() == 4 && x.rank() == 4 && conv.groups >= 1 && x[1] % conv.groups == 0,
            "conv2d_weight_gradient: takes gradients [n, out, h, w] and images [n, c, h, w]", g, x);
    const Shape w{g[1], x[1] / conv.groups, kernel.h, kernel.w};
    require(conv.shape(x, w) == g, "conv2d_weight_gradient: the gradient is not of the convolution's shape",
            g, x);
    return w;
  }
  constexpr std::int64_t flops(const Shape& g, const Shape& x) const {
    return 2 * g.size() * x[1] / conv.groups * kernel.h * kernel.w;
  }
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize& g, const DenseSize& x) const {
    return result.bytes() + g.bytes() + Conv2d::touched(x, g.shape, result.shape);
  }
  template <AnyTensor T> auto pullback(Needs<2> needs, const T&, const T& g, const T& x) const;
};

// y = conv(x, w), and <y, g> = <x, data(g, w)> = <w, weight(g, x)>: each of the three gives the gradients of
// the other two.
template <AnyTensor T> auto Conv2d::pullback(Needs<2> needs, const T&, const T& x, const T& w) const {
  return [data = Conv2dDataGradient{*this, {x.shape()[2], x.shape()[3]}},
          weight = Conv2dWeightGradient{*this, {w.shape()[2], w.shape()[3]}}, needs, x = needs[1] ? x : T{},
          w = needs[0] ? w : T{}](const T& g) {
    std::array<T, 2> gradients;
    if (needs[0]) gradients[0] = eval(data, g, w);
    if (needs[1]) gradients[1] = eval(weight, g, x);
    return gradients;
  };
}

template <AnyTensor T>
auto Conv2d::pullback(Needs<3> needs, const T& out, const T& x, const T& w, const T&) const {
  return [rule = pullback(Needs<2>{needs.bits & 3}, out, x, w), needs](const T& g) {
    auto by_x_and_w = rule(g);
    std::array<T, 3> gradients{std::move(by_x_and_w[0]), std::move(by_x_and_w[1]), T{}};
    if (needs[2]) gradients[2] = sum(g, {0, 2, 3});
    return gradients;
  };
}

template <AnyTensor T>
auto Conv2dDataGradient::pullback(Needs<2> needs, const T&, const T& g, const T& w) const {
  return [weight = Conv2dWeightGradient{conv, {w.shape()[2], w.shape()[3]}}, needs, g = needs[1] ? g : T{},
          w = needs[0] ? w : T{}](const T& v) {
    std::array<T, 2> gradients;
    if (needs[0]) gradients[0] = eval(weight.conv, v, w);
    if (needs[1]) gradients[1] = eval(weight, g, v);
    return gradients;
  };
}

template <AnyTensor T>
auto Conv2dWeightGradient::pullback(Needs<2> needs, const T&, const T& g, const T& x) const {
  return [data = Conv2dDataGradient{conv, {x.shape()[2], x.shape()[3]}}, needs, g = needs[1] ? g : T{},
          x = needs[0] ? x : T{}](const T& v) {
    std::array<T, 2> gradients;
    if (needs[0]) gradients[0] = eval(data.conv, x, v);
    if (needs[1]) gradients[1] = eval(data, g, v);
    return gradients;
  };
}

/// relu(conv2d(x, w, bias)), or relu(conv2d(x, w, bias) + residual): layers of residual networks for
/// inference, whose normalisation is part of the kernels.
struct Conv2dRelu {
  static constexpr std::string_view name = "conv2d_relu";
  static constexpr bool ends_with_activation = true;
  Conv2d conv;

  constexpr Shape shape(const Shape& x, const Shape& w, const Shape& bias) const {
    return conv.shape(x, w, bias);
  }
  constexpr Shape shape(const Shape& x, const Shape& w, const Shape& bias, const Shape& residual) const {
    const Shape to = shape(x, w, bias);
    require(residual == to, "conv2d_add_relu: the residual is not of the convolution's shape", x, w, bias,
            residual);
    return to;
  }
  template <std::same_as<Shape>... Residual>
  constexpr std::int64_t flops(const Shape& x, const Shape& w, const Shape& bias, const Residual&...) const {
    return conv.flops(x, w, bias) + (1 + static_cast<int>(sizeof...(Residual))) * shape(x, w, bias).size();
  }
  template <std::same_as<DenseSize>... Residual>
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize& x, const DenseSize& w,
                               const DenseSize& bias, const Residual&... residual) const {
    return (conv.bytes(result, x, w, bias) + ... + residual.bytes());
  }
  template <AnyTensor T> constexpr T decompose(const T& x, const T& w, const T& bias) const {
    return relu(eval(conv, x, w, bias));
  }
  template <AnyTensor T>
  constexpr T decompose(const T& x, const T& w, const T& bias, const T& residual) const {
    return eval(AddRelu{}, eval(conv, x, w, bias), residual);
  }
};

}  // namespace op

/// The convolution of images x [n, c, h, w] with kernels w [out, c / groups, kh, kw]: [n, out, h', w']; see
/// `op::Conv2d`. `conv2d(x, w, {.stride = 2, .padding = 1})`. Throws `ShapeError` if they do not fit.
template <AnyTensor X, AnyTensor W> constexpr auto conv2d(const X& x, const W& w, op::Conv2d options = {}) {
  return eval(options, x, w);
}

/// The same with a bias [out], added to each output channel.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv2d(const X& x, const W& w, const B& bias, op::Conv2d options = {}) {
  return eval(options, x, w, bias);
}

/// relu(conv2d(x, w, bias, options)), in one pass where the backend can.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv2d_relu(const X& x, const W& w, const B& bias, op::Conv2d options = {}) {
  return eval(op::Conv2dRelu{options}, x, w, bias);
}

/// relu(conv2d(x, w, bias, options) + residual), in one pass where the backend can. The residual has the
/// shape of the convolution.
template <AnyTensor X, AnyTensor W, AnyTensor B, AnyTensor R>
constexpr auto conv2d_add_relu(const X& x, const W& w, const B& bias, const R& residual,
                               op::Conv2d options = {}) {
  return eval(op::Conv2dRelu{options}, x, w, bias, residual);
}

namespace detail {

/// A signal [n, c, l] or its kernels as images of one row.
template <AnyTensor X> constexpr auto as_one_row(const X& x) {
  return reshape(x, {x.shape()[0], x.shape()[1], 1, x.shape()[2]});
}

constexpr void require_signals(const Shape& x, const Shape& w) {
  require(x.rank() == 3 && w.rank() == 3, "conv1d: takes signals [n, c, l] and kernels [out, c / groups, k]",
          x, w);
}

/// The options of a convolution along one axis: those of the width.
constexpr op::Conv2d along_width(op::Conv2d options) {
  options.stride.h = options.dilation.h = 1, options.padding.h = 0;
  return options;
}

template <AnyTensor Y> constexpr auto without_row(const Y& y) {
  return reshape(y, {y.shape()[0], y.shape()[1], y.shape()[3]});
}

}  // namespace detail

/// The cross-correlation of signals x [n, c, l] with kernels w [out, c / groups, k]: [n, out, l'] with
/// l' = ⌊(l + 2 padding - dilation (k - 1) - 1) / stride⌋ + 1, as PyTorch's `conv1d`. Of the options the
/// numbers for the width count. Throws `ShapeError` if the operands do not fit.
template <AnyTensor X, AnyTensor W> constexpr auto conv1d(const X& x, const W& w, op::Conv2d options = {}) {
  detail::require_signals(x.shape(), w.shape());
  return detail::without_row(
      conv2d(detail::as_one_row(x), detail::as_one_row(w), detail::along_width(options)));
}

/// The same with a bias [out], added to each output channel.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto conv1d(const X& x, const W& w, const B& bias, op::Conv2d options = {}) {
  detail::require_signals(x.shape(), w.shape());
  return detail::without_row(
      conv2d(detail::as_one_row(x), detail::as_one_row(w), bias, detail::along_width(options)));
}

}  // namespace taut
