#pragma once
// Convolutions of images that are no larger than the kernel, as products of matrices. Most places of the
// kernel then only meet padding: of 3 x 3 places with a padding of 1 each output uses 1 on an image of one
// pixel and 4 on one of 2 x 2. An image is a vector of its channels and pixels, in whatever layout, and so is
// the result; the kernels, written out for each pair of pixels, are the matrix between them.

#include <vector>

#include "array.hpp"
#include "conv_geometry.hpp"
#include "gemm.hpp"
#include "numbering.hpp"

namespace taut::cpu {

/// Where the vector of an image has a channel of a pixel.
struct VectorOrder {
  std::int64_t pixels, block;

  VectorOrder(const Shape& shape, Layout layout)
      : pixels(shape[2] * shape[3]), block(pixels == 1 ? 1 : block_of(layout, shape)) {}

  std::int64_t at(std::int64_t channel, std::int64_t pixel) const {
    return (channel / block * pixels + pixel) * block + channel % block;
  }
};

/// Whether each place of the result sees each element of the image along an axis.
constexpr bool all_meet(std::int64_t image, std::int64_t taps, std::int64_t places, std::int64_t stride,
                        std::int64_t padding, std::int64_t dilation) {
  for (std::int64_t place = 0; place < places; ++place)
    for (std::int64_t at = 0; at < image; ++at) {
      const auto offset = at + padding - place * stride;
      if (offset < 0 || offset % dilation != 0 || offset / dilation >= taps) return false;
    }
  return true;
}

/// Whether a convolution is computed like this: where the matrix has no zeros, which an infinite pixel would
/// turn into NaN, and there are enough images to make up for writing it out.
inline bool unrolls(const ConvGeometry& g) {
  const auto pixels = g.h * g.w, places = g.oh * g.ow;
  if (g.groups != 1 || pixels * places == 0 || pixels > 8 || places > 8) return false;
  return (pixels * places == 1 || g.n >= 32) &&
         all_meet(g.h, g.kh, g.oh, g.stride.h, g.padding.h, g.dilation.h) &&
         all_meet(g.w, g.kw, g.ow, g.stride.w, g.padding.w, g.dilation.w);
}

/// The layout of a convolution's other images, given that of the ones that are there.
inline Layout matching_layout(Layout own, const Shape& other) {
  const bool fits =
      own == Layout::channels_last || other[1] % std::max<std::int64_t>(1, block_of(own, other)) == 0;
  return fits ? own : Layout::dense;
}

/// A convolution's kernels as a matrix [out · places, c · pixels].
class UnrolledConv {
 public:
  UnrolledConv(const ConvGeometry& g, Layout x_layout, Layout y_layout)
      : g_(g), x_(g.x(), x_layout), y_(g.y(), y_layout) {
    for (std::int64_t i = 0; i < g.oh; ++i)
      for (std::int64_t j = 0; j < g.ow; ++j)
        for (std::int64_t k = 0; k < g.kh; ++k)
          for (std::int64_t l = 0; l < g.kw; ++l) {
            const auto row = i * g.stride.h + k * g.dilation.h - g.padding.h;
            const auto column = j * g.stride.w + l * g.dilation.w - g.padding.w;
            if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
            meetings_.push_back({i * g.ow + j, row * g.w + column, k * g.kw + l});
          }
    for (std::int64_t c = 0; c < g.c; ++c) channels_.push_back(x_.at(c, 0));
  }

  std::int64_t rows() const { return g_.out * y_.pixels; }
  std::int64_t columns() const { return g_.c * x_.pixels; }

  /// The matrix of the kernels, kept with them until they change.
  template <class E> Buffer matrix(const BasicCpuArray<E>& kernels) const {
    const FormKey key{number(), {g_.out, g_.c, g_.kh, g_.kw}};
    return kernels.buffer().form_or(key, [&] {
      detail::kernel_conversions.fetch_add(1, std::memory_order_relaxed);
      auto form = Buffer::allocate(static_cast<std::size_t>(rows() * columns()) * sizeof(E));
      E* const to = reinterpret_cast<E*>(form.data());
      const E* const from = kernels.data();
      for_each_output([&](std::int64_t o) {
        for_each_weight(o, [&](std::int64_t at, std::int64_t weight) { to[at] = from[weight]; });
      });
      return form;
    });
  }

  /// Adds the elements of such a matrix up to the kernels that they stand for.
  template <class E> BasicCpuArray<E> fold(const E* matrix) const {
    auto kernels = BasicCpuArray<E>::uninitialized(g_.kernels());
    E* const to = kernels.mutable_data();
    const auto each = g_.c * g_.kh * g_.kw;
    for_each_output([&](std::int64_t o) {
      std::fill_n(to + o * each, each, E(0));
      for_each_weight(o, [&](std::int64_t at, std::int64_t weight) { to[weight] += matrix[at]; });
    });
    return kernels;
  }

 private:
  /// A place of the result sees a pixel through a place of the kernel.
  struct Meeting {
    std::int64_t place, pixel, tap;
  };

  template <class F> void for_each_output(const F& body) const {
    const auto work = std::max<std::int64_t>(1, y_.pixels * columns());
    parallel_for(g_.out, std::max<std::int64_t>(1, default_grain / work),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto o = begin; o < end; ++o) body(o);
                 });
  }

  /// Calls visit(position in the matrix, position in the kernels) for the kernels of one output channel.
  template <class F> void for_each_weight(std::int64_t o, const F& visit) const {
    const auto taps = g_.kh * g_.kw;
    for (const auto& meeting : meetings_) {
      const auto first = y_.at(o, meeting.place) * columns() + meeting.pixel * x_.block;
      auto weight = o * g_.c * taps + meeting.tap;
      for (const auto channel : channels_) {
        visit(first + channel, weight);
        weight += taps;
      }
    }
  }

  /// A number for this way of writing out kernels, so that arrays can keep forms under it.
  std::uint64_t number() const {
    struct Order {
      ConvGeometry geometry;
      std::int64_t x_block, y_block;
      bool operator==(const Order&) const = default;
    };
    static Numbering<Order> orders(std::uint64_t{1} << 32);  // above those of oneDNN's layouts
    Order own{g_, x_.block, y_.block};
    own.geometry.n = 0;
    return orders.of(own);
  }

  ConvGeometry g_;
  VectorOrder x_, y_;
  std::vector<Meeting> meetings_;
  std::vector<std::int64_t> channels_;  ///< where the vector of an image has the first pixel of each
};

/// y = conv(x, kernels) + bias; `bias` may be null.
template <class E>
BasicCpuArray<E> conv2d_unrolled(const ConvGeometry& g, const BasicCpuArray<E>& x,
                                 const BasicCpuArray<E>& kernels, const BasicCpuArray<E>* bias) {
  const Layout layout = x.layout(), y_layout = matching_layout(layout, g.y());
  const UnrolledConv conv(g, layout, y_layout);
  auto y = BasicCpuArray<E>::uninitialized(g.y(), y_layout);
  std::vector<E> row;
  if (bias) {
    row.resize(static_cast<std::size_t>(conv.rows()));
    const VectorOrder order(g.y(), y_layout);
    for (std::int64_t o = 0; o < g.out; ++o)
      for (std::int64_t place = 0; place < order.pixels; ++place)
        row[static_cast<std::size_t>(order.at(o, place))] = bias->data()[o];
  }
  const Buffer matrix = conv.matrix(kernels);
  gemm(Gemm{.m = g.n, .n = conv.rows(), .k = conv.columns(), .transpose_b = true}, x.data(layout),
       reinterpret_cast<const E*>(matrix.data()), bias ? row.data() : nullptr, y.mutable_data());
  return y;
}

/// The gradient of the convolution by x, for dy of the shape of y.
template <class E>
BasicCpuArray<E> conv2d_data_gradient_unrolled(const ConvGeometry& g, const BasicCpuArray<E>& dy,
                                               const BasicCpuArray<E>& kernels) {
  const Layout layout = dy.layout(), x_layout = matching_layout(layout, g.x());
  const UnrolledConv conv(g, x_layout, layout);
  auto dx = BasicCpuArray<E>::uninitialized(g.x(), x_layout);
  const Buffer matrix = conv.matrix(kernels);
  gemm(Gemm{.m = g.n, .n = conv.columns(), .k = conv.rows()}, dy.data(layout),
       reinterpret_cast<const E*>(matrix.data()), static_cast<const E*>(nullptr), dx.mutable_data());
  return dx;
}

/// The gradient of the convolution by its kernels.
template <class E>
BasicCpuArray<E> conv2d_weight_gradient_unrolled(const ConvGeometry& g, const BasicCpuArray<E>& dy,
                                                 const BasicCpuArray<E>& x) {
  const UnrolledConv conv(g, x.layout(), dy.layout());
  const auto product = Buffer::allocate(static_cast<std::size_t>(conv.rows() * conv.columns()) * sizeof(E));
  E* const matrix = reinterpret_cast<E*>(product.data());
  gemm(Gemm{.m = conv.rows(), .n = conv.columns(), .k = g.n, .transpose_a = true}, dy.data(dy.layout()),
       x.data(x.layout()), static_cast<const E*>(nullptr), matrix);
  return conv.fold(static_cast<const E*>(matrix));
}

}  // namespace taut::cpu
