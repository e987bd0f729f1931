#pragma once
// Copies between strided views: what all movement operators are on a dense array.

#include <algorithm>
#include <array>
#include <cstring>

#include "array.hpp"

namespace taut::cpu {

/// Distances in elements between neighbours along each axis.
using Strides = std::array<std::int64_t, max_rank>;

constexpr Strides dense_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; stride *= shape[i], --i)
    strides[static_cast<std::size_t>(i)] = stride;
  return strides;
}

namespace detail {

struct CopyAxis {
  std::int64_t extent = 1, in = 0, out = 0;
};

/// The axes of a copy, innermost first, without those of extent one and with neighbours merged.
struct CopyAxes {
  std::array<CopyAxis, max_rank> axes;
  int count = 0;

  CopyAxes(const Shape& extents, const Strides& in, const Strides& out) {
    for (int i = extents.rank() - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      if (extents[i] == 1) continue;
      if (count > 0) {
        CopyAxis& last = axes[static_cast<std::size_t>(count - 1)];
        if (in[k] == last.in * last.extent && out[k] == last.out * last.extent) {
          last.extent *= extents[i];
          continue;
        }
      }
      axes[static_cast<std::size_t>(count++)] = {extents[i], in[k], out[k]};
    }
    count = std::max(count, 1);
  }
};

inline constexpr std::int64_t copy_block = 32;

}  // namespace detail

/// out[Σ iₐ out_strideₐ] = in[Σ iₐ in_strideₐ] for all indices i below `extents`. Where the two innermost
/// directions differ (a transpose) it works in square blocks, so that each cache line is fetched once.
template <class E>
void copy_strided(const Shape& extents, const E* in, const Strides& in_strides, E* out,
                  const Strides& out_strides) {
  if (extents.size() == 0) return;
  detail::CopyAxes plan(extents, in_strides, out_strides);
  auto& axes = plan.axes;
  // The second axis is the one along which the input is contiguous, if that is not the first.
  if (axes[0].in != 1)
    for (int i = 1; i < plan.count; ++i)
      if (axes[static_cast<std::size_t>(i)].in == 1) std::swap(axes[1], axes[static_cast<std::size_t>(i)]);
  const detail::CopyAxis inner = axes[0], second = axes[1];
  const std::int64_t blocks = (second.extent + detail::copy_block - 1) / detail::copy_block;
  std::int64_t jobs = blocks;
  for (int i = 2; i < plan.count; ++i) jobs *= axes[static_cast<std::size_t>(i)].extent;
  const std::int64_t job_size = std::min(second.extent, detail::copy_block) * inner.extent;
  parallel_for(jobs, std::max<std::int64_t>(1, default_grain / job_size),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t job = begin; job < end; ++job) {
                   std::int64_t rest = job / blocks;
                   const E* from = in;
                   E* to = out;
                   for (int i = 2; i < plan.count; ++i) {
                     const auto& axis = axes[static_cast<std::size_t>(i)];
                     from += rest % axis.extent * axis.in;
                     to += rest % axis.extent * axis.out;
                     rest /= axis.extent;
                   }
                   const std::int64_t j0 = job % blocks * detail::copy_block;
                   const std::int64_t j1 = std::min(j0 + detail::copy_block, second.extent);
                   if (inner.in == 1 && inner.out == 1) {
                     for (std::int64_t j = j0; j < j1; ++j)
                       std::memcpy(to + j * second.out, from + j * second.in,
                                   static_cast<std::size_t>(inner.extent) * sizeof(E));
                     continue;
                   }
                   for (std::int64_t i0 = 0; i0 < inner.extent; i0 += detail::copy_block) {
                     const std::int64_t i1 = std::min(i0 + detail::copy_block, inner.extent);
                     for (std::int64_t j = j0; j < j1; ++j)
                       for (std::int64_t i = i0; i < i1; ++i)
                         to[j * second.out + i * inner.out] = from[j * second.in + i * inner.in];
                   }
                 }
               });
}

}  // namespace taut::cpu
