#pragma once
// Convolution without oneDNN: each image's patches are laid out as the columns of a matrix, which is
// multiplied with the kernels.

#include <algorithm>

#include "../core/pool.hpp"
#include "conv_geometry.hpp"
#include "gemm.hpp"
#include "layout.hpp"

namespace taut::cpu {

namespace detail {

/// The part of the output's columns that a place of the kernel reads from within the image.
struct InsideRange {
  std::int64_t begin, end;

  InsideRange(std::int64_t image, std::int64_t places, std::int64_t stride, std::int64_t offset) {
    begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    end = offset >= image ? 0 : (image - 1 - offset) / stride + 1;
    begin = std::min(begin, places);
    end = std::clamp(end, begin, places);
  }
};

/// Calls row(channel, k, l) for each row of the matrix of patches, and threads share the channels.
template <class F> void for_each_patch_row(const ConvGeometry& g, const F& row) {
  const auto work = g.kh * g.kw * g.oh * g.ow;
  parallel_for(g.c / g.groups, std::max<std::int64_t>(1, default_grain / std::max<std::int64_t>(work, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto c = begin; c < end; ++c)
                   for (std::int64_t k = 0; k < g.kh; ++k)
                     for (std::int64_t l = 0; l < g.kw; ++l) row(c, k, l);
               });
}

/// The matrix [c / groups · kh · kw, oh · ow] of the patches of one group of an image.
template <class E> void gather_patches(const ConvGeometry& g, const E* image, E* patches) {
  for_each_patch_row(g, [&](std::int64_t c, std::int64_t k, std::int64_t l) {
    E* to = patches + ((c * g.kh + k) * g.kw + l) * g.oh * g.ow;
    const auto top = k * g.dilation.h - g.padding.h, left = l * g.dilation.w - g.padding.w;
    const InsideRange rows(g.h, g.oh, g.stride.h, top), columns(g.w, g.ow, g.stride.w, left);
    std::fill_n(to, g.oh * g.ow, E(0));
    for (auto i = rows.begin; i < rows.end; ++i) {
      const E* from = image + (c * g.h + i * g.stride.h + top) * g.w + left;
      for (auto j = columns.begin; j < columns.end; ++j) to[i * g.ow + j] = from[j * g.stride.w];
    }
  });
}

/// Adds each element of such a matrix to the pixel that it came from.
template <class E> void scatter_patches(const ConvGeometry& g, const E* patches, E* image) {
  for_each_patch_row(g, [&](std::int64_t c, std::int64_t k, std::int64_t l) {
    const E* from = patches + ((c * g.kh + k) * g.kw + l) * g.oh * g.ow;
    const auto top = k * g.dilation.h - g.padding.h, left = l * g.dilation.w - g.padding.w;
    const InsideRange rows(g.h, g.oh, g.stride.h, top), columns(g.w, g.ow, g.stride.w, left);
    for (auto i = rows.begin; i < rows.end; ++i) {
      E* to = image + (c * g.h + i * g.stride.h + top) * g.w + left;
      for (auto j = columns.begin; j < columns.end; ++j) to[j * g.stride.w] += from[i * g.ow + j];
    }
  });
}

/// Calls body(x, y, kernels) with the offsets of each group of each image.
template <class F> void for_each_group(const ConvGeometry& g, const F& body) {
  const auto x = g.c / g.groups * g.h * g.w, y = g.out / g.groups * g.oh * g.ow;
  const auto kernels = g.out / g.groups * (g.c / g.groups) * g.kh * g.kw;
  for (std::int64_t image = 0; image < g.n; ++image)
    for (std::int64_t group = 0; group < g.groups; ++group)
      body((image * g.groups + group) * x, (image * g.groups + group) * y, group * kernels);
}

/// Memory for the matrix of patches of one group.
template <class E> Buffer patch_buffer(const ConvGeometry& g) {
  return Buffer::allocate(static_cast<std::size_t>(g.c / g.groups * g.kh * g.kw * g.oh * g.ow) * sizeof(E));
}

}  // namespace detail

/// y = conv(x, kernels) + bias on dense arrays; `bias` may be null.
template <class E>
void conv2d_portable(const ConvGeometry& g, const E* x, const E* kernels, const E* bias, E* y) {
  const auto buffer = detail::patch_buffer<E>(g);
  E* const patches = reinterpret_cast<E*>(buffer.data());
  const Gemm product{.m = g.out / g.groups, .n = g.oh * g.ow, .k = g.c / g.groups * g.kh * g.kw};
  detail::for_each_group(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t at_kernels) {
    detail::gather_patches(g, x + at_x, patches);
    gemm(product, kernels + at_kernels, patches, static_cast<const E*>(nullptr), y + at_y);
  });
  if (bias)
    for (std::int64_t plane = 0; plane < g.n * g.out; ++plane)
      for (std::int64_t i = 0; i < g.oh * g.ow; ++i) y[plane * g.oh * g.ow + i] += bias[plane % g.out];
}

/// dx = the gradient of the convolution by x, for dy of the shape of y.
template <class E>
void conv2d_data_gradient_portable(const ConvGeometry& g, const E* dy, const E* kernels, E* dx) {
  const auto buffer = detail::patch_buffer<E>(g);
  E* const patches = reinterpret_cast<E*>(buffer.data());
  const Gemm product{
      .m = g.c / g.groups * g.kh * g.kw, .n = g.oh * g.ow, .k = g.out / g.groups, .transpose_a = true};
  std::fill_n(dx, g.x().size(), E(0));
  detail::for_each_group(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t at_kernels) {
    gemm(product, kernels + at_kernels, dy + at_y, static_cast<const E*>(nullptr), patches);
    detail::scatter_patches(g, patches, dx + at_x);
  });
}

/// dw = the gradient of the convolution by its kernels.
template <class E>
void conv2d_weight_gradient_portable(const ConvGeometry& g, const E* dy, const E* x, E* dw) {
  const auto buffer = detail::patch_buffer<E>(g);
  E* const patches = reinterpret_cast<E*>(buffer.data());
  const Gemm product{
      .m = g.out / g.groups, .n = g.c / g.groups * g.kh * g.kw, .k = g.oh * g.ow, .transpose_b = true};
  const auto part = Buffer::allocate(static_cast<std::size_t>(product.m * product.n) * sizeof(E));
  E* const one = reinterpret_cast<E*>(part.data());
  std::fill_n(dw, g.kernels().size(), E(0));
  detail::for_each_group(g, [&](std::int64_t at_x, std::int64_t at_y, std::int64_t at_kernels) {
    detail::gather_patches(g, x + at_x, patches);
    gemm(product, dy + at_y, patches, static_cast<const E*>(nullptr), one);
    for (std::int64_t i = 0; i < product.m * product.n; ++i) dw[at_kernels + i] += one[i];
  });
}

}  // namespace taut::cpu
