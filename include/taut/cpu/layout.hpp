#pragma once
// How images lie in memory. Operators on images see [n, c, h, w]; where its elements are is the backend's own
// business. Convolutions are fastest where the channels of a pixel lie together, wholly or in blocks of a
// SIMD register. Results keep the layout of what they were computed from; whoever asks an array for its dense
// data has it converted, once for all copies.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "../core/shape.hpp"
#include "parallel.hpp"

namespace taut::cpu {

/// All layouts are [n, c / block, h, w, block]: they differ in how many channels lie together.
enum class Layout : std::uint8_t {
  dense,          ///< 1: row-major [n, c, h, w], and the only one of arrays that are not images
  channels_last,  ///< all: [n, h, w, c]
  blocked8,       ///< 8, of which the number of channels is a multiple
  blocked16       ///< 16, likewise
};

/// How many channels lie together in images of the given shape.
constexpr std::int64_t block_of(Layout layout, const Shape& shape) {
  switch (layout) {
    case Layout::dense:
      return 1;
    case Layout::channels_last:
      return shape[1];
    case Layout::blocked8:
      return 8;
    case Layout::blocked16:
      return 16;
  }
  return 1;
}

/// The layout in which images of two layouts meet: the first that is not dense.
constexpr Layout common_layout(Layout a, Layout b) { return a == Layout::dense ? b : a; }

/// Whether two layouts put the elements of images of the given shape into the same order.
constexpr bool same_order(const Shape& shape, Layout a, Layout b) {
  return a == b || shape[2] * shape[3] == 1 || block_of(a, shape) == block_of(b, shape);
}

/// An array [n, c, ...] as [n, blocks, pixels, block].
struct ImageView {
  std::int64_t n, blocks, pixels = 1, block;

  ImageView(const Shape& shape, Layout layout) : n(shape[0]), block(block_of(layout, shape)) {
    for (int i = 2; i < shape.rank(); ++i) pixels *= shape[i];
    blocks = block == 0 ? 0 : shape[1] / block;
  }

  std::int64_t channels() const { return blocks * block; }
};

namespace detail {
inline std::atomic<std::int64_t> conversions{0}, converted_bytes{0}, kernel_conversions{0};
}  // namespace detail

/// How often arrays have been converted from one layout to another so far, by all threads, and how many bytes
/// that were; and how often kernels of convolutions have been brought into the form in which they are
/// multiplied.
struct Conversions {
  std::int64_t count = 0, bytes = 0, kernels = 0;
};

inline Conversions conversions() {
  return {detail::conversions, detail::converted_bytes, detail::kernel_conversions};
}

/// Writes images of the given shape, which lie at `from` in one layout, to `to` in another.
template <class E>
void convert_layout(const Shape& shape, const E* from, Layout from_layout, E* to, Layout to_layout) {
  detail::conversions.fetch_add(1, std::memory_order_relaxed);
  detail::converted_bytes.fetch_add(shape.size() * static_cast<std::int64_t>(sizeof(E)),
                                    std::memory_order_relaxed);
  const ImageView a(shape, from_layout), b(shape, to_layout);
  const auto image = a.channels() * a.pixels;
  // Of a block of the result, the channels that a SIMD register holds are gathered pixel by pixel.
  constexpr std::int64_t chunk = 16;
  const auto chunks = (b.block + chunk - 1) / chunk, planes = b.blocks * chunks;
  parallel_for(b.n * planes,
               std::max<std::int64_t>(1, default_grain / std::max<std::int64_t>(1, chunk * a.pixels)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto plane = begin; plane < end; ++plane) {
                   const auto block = plane % planes / chunks, first = plane % chunks * chunk;
                   const auto lanes = std::min(chunk, b.block - first);
                   const E* source = from + plane / planes * image;
                   E* target = to + plane / planes * image + block * b.block * b.pixels + first;
                   const E* lane[chunk];
                   for (std::int64_t l = 0; l < lanes; ++l) {
                     const auto channel = block * b.block + first + l;
                     lane[l] = source + channel / a.block * a.block * a.pixels + channel % a.block;
                   }
                   for (std::int64_t pixel = 0; pixel < a.pixels; ++pixel)
                     for (std::int64_t l = 0; l < lanes; ++l)
                       target[pixel * b.block + l] = lane[l][pixel * a.block];
                 }
               });
}

}  // namespace taut::cpu
