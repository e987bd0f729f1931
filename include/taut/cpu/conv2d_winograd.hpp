#pragma once
// Convolutions of 3 x 3 with stride 1 by Winograd's algorithm F(4 x 4, 3 x 3): Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2015.
//
// The result is cut into tiles of 4 x 4. A tile depends on 6 x 6 pixels of the image; transformed, these are
// 36 vectors of channels, each of which meets one matrix of transformed kernels; transformed back, the 36
// products are the tile. That is 36 multiplications where the definition has 144. A thread takes some tiles
// at a time through all three stages, so few that what passes from stage to stage stays in its second-level
// cache; where the transformed kernels are larger than all that, the threads share the tiles and each
// multiplies by its part of the kernels, which so pass through the caches once. Images lie in blocks of as
// many channels as a SIMD register holds, kernels are transformed once and kept until they change.

#include <algorithm>
#include <cstdint>

#include "array.hpp"
#include "conv_ending.hpp"
#include "conv_geometry.hpp"
#include "winograd_transform.hpp"

namespace taut::cpu::winograd {

/// The images that a convolution takes or gives, in blocks of `lanes` channels.
struct Image {
  std::int64_t channels, h, w;

  std::int64_t pixels() const { return h * w; }
  std::int64_t blocks() const { return channels / lanes; }
};

/// A convolution, or the gradient by its images, which is one of the result's gradient with the kernels
/// turned round.
struct Problem {
  Image from, to;
  std::int64_t n, padding_h, padding_w;
  bool turned;  ///< the kernels are those of the gradient

  std::int64_t tiles_h() const { return (to.h + tile - 1) / tile; }
  std::int64_t tiles_w() const { return (to.w + tile - 1) / tile; }
  std::int64_t tiles() const { return n * tiles_h() * tiles_w(); }

  /// From place to place of the transformed kernels; like that of tiles, it leads from one cache set to
  /// another.
  std::int64_t kernel_step() const { return from.channels * to.channels + lanes; }
  /// Whether the transformed kernels are larger than the transforms of all tiles.
  bool kernels_prevail() const {
    return tiles() * (from.channels + to.channels) <= from.channels * to.channels;
  }
};

/// Whether the algorithm can compute this convolution and its gradients.
inline bool applies(const ConvGeometry& g) {
  return g.kh == 3 && g.kw == 3 && g.groups == 1 && g.stride == HeightWidth(1) &&
         g.dilation == HeightWidth(1) && g.padding.h <= 2 && g.padding.w <= 2 && g.padding.h >= 0 &&
         g.padding.w >= 0 && g.c % lanes == 0 && g.out % lanes == 0;
}

inline Problem forward(const ConvGeometry& g) {
  return {{g.c, g.h, g.w}, {g.out, g.oh, g.ow}, g.n, g.padding.h, g.padding.w, false};
}

inline Problem gradient(const ConvGeometry& g) {
  return {{g.out, g.oh, g.ow}, {g.c, g.h, g.w}, g.n, 2 - g.padding.h, 2 - g.padding.w, true};
}

/// Whether it needs no trial against the direct algorithm: with tiles enough for all threads and to make up
/// for the transformation of the kernels, and few of their pixels outside of the image. It takes 0.4 to 0.9
/// of the time then.
inline bool pays(const ConvGeometry& g) {
  const auto tiles = forward(g).tiles();
  return std::min(g.c, g.out) >= 32 && tiles >= 48 * threads() && 4 * tiles >= std::max(g.c, g.out) &&
         8 * g.n * g.oh * g.ow >= 7 * tiles * tile * tile;
}

/// Whether it loses without a trial, which would find the transformed kernels in a cache, since it has just
/// used them: four times as large as the kernels, they come from memory between a network's other layers,
/// which takes as long as 7 tiles by the direct algorithm. (One image of 256 channels of 8 x 8, 4 tiles: 780
/// against 515 us.)
inline bool loses(const ConvGeometry& g) {
  constexpr std::int64_t cache_bytes = std::int64_t{2} << 20;
  const auto kernel_bytes = places * g.c * g.out * static_cast<std::int64_t>(sizeof(float));
  return forward(g).tiles() < 8 && kernel_bytes > cache_bytes;
}

/// The place of one tile.
struct Place {
  std::int64_t image, row, column;

  Place(const Problem& p, std::int64_t index)
      : image(index / (p.tiles_h() * p.tiles_w())),
        row(index / p.tiles_w() % p.tiles_h() * tile),
        column(index % p.tiles_w() * tile) {}
};

/// Transforms the square of n x n pixels from (row, column) on, of a plane of an image; pixels outside of it
/// are 0.
template <int n, int m, class Write>
void transform_pixels(const float* plane, const Image& image, std::int64_t row, std::int64_t column,
                      Row<m> (*const rule)(const Row<n>&), const Write& write) {
  const float* const first = plane + (row * image.w + column) * lanes;
  if (row >= 0 && column >= 0 && row + n <= image.h && column + n <= image.w)
    return transform(rule, reader(first, image.w * lanes, lanes), write);
  alignas(Vector) static constexpr float zeros[lanes] = {};
  const auto read = [&](int i, int j) -> Vector {
    const bool meets = (row + i >= 0) & (row + i < image.h) & (column + j >= 0) & (column + j < image.w);
    return blocked::load(meets ? first + (i * image.w + j) * lanes : zeros);
  };
  transform(rule, read, write);
}

/// The windows of tiles [begin, end), transformed: v [place][tile][channel], `step` from place to place.
inline void transform_windows(const Problem& p, const float* x, std::int64_t begin, std::int64_t end,
                              float* v, std::int64_t step) {
  for (auto t = begin; t < end; ++t) {
    const Place at(p, t);
    for (std::int64_t block = 0; block < p.from.blocks(); ++block) {
      const float* plane = x + (at.image * p.from.blocks() + block) * p.from.pixels() * lanes;
      float* const to = v + (t - begin) * p.from.channels + block * lanes;
      transform_pixels(plane, p.from, at.row - p.padding_h, at.column - p.padding_w, transform_window,
                       writer(to, window * step, step));
    }
  }
}

/// NaN stays NaN.
inline Vector relu(Vector x) { return x <= 0 ? Vector{} : x; }

/// Tiles [begin, end) of the result, from their products m [place][tile][channel].
inline void write_tiles(const Problem& p, const float* m, std::int64_t step, std::int64_t begin,
                        std::int64_t end, const ConvEpilogue& epilogue, float* y) {
  for (auto t = begin; t < end; ++t) {
    const Place at(p, t);
    const auto rows = std::min<std::int64_t>(tile, p.to.h - at.row);
    const auto columns = std::min<std::int64_t>(tile, p.to.w - at.column);
    for (std::int64_t block = 0; block < p.to.blocks(); ++block) {
      const auto read = reader(m + (t - begin) * p.to.channels + block * lanes, window * step, step);
      const Vector bias = epilogue.bias ? Vector(blocked::load(epilogue.bias + block * lanes)) : Vector{};
      const auto first =
          (((at.image * p.to.blocks() + block) * p.to.h + at.row) * p.to.w + at.column) * lanes;
      const auto finish = [&](int i, int j, Vector value) {
        const auto offset = first + (i * p.to.w + j) * lanes;
        value += bias;
        if (epilogue.residual) value += blocked::load(epilogue.residual + offset);
        blocked::store<float>(y + offset, epilogue.relu ? relu(value) : value);
      };
      if (rows == tile && columns == tile)
        transform(tile_of_products, read, finish);
      else
        transform(tile_of_products, read, [&](int i, int j, const Vector& value) {
          if (i < rows && j < columns) finish(i, j, value);
        });
    }
  }
}

/// The transformed kernels: u [place][panel][channel of the image][channel of the result in the panel], a
/// panel being two vectors wide, or one if that is the rest.
inline void transform_kernels(const Problem& p, const float* w, float* u) {
  const auto in = p.from.channels, out = p.to.channels, step = p.kernel_step();
  const auto of_in = p.turned ? out * 9 : 9, of_out = p.turned ? 9 : in * 9;
  const auto transform_block = [=](std::int64_t block) {
    const auto panel = block / 2 * 2, width = std::min<std::int64_t>(2, out / lanes - panel) * lanes;
    float* to = u + panel * lanes * in + block % 2 * lanes;
    for (std::int64_t c = 0; c < in; ++c, to += width) {
      const float* const from = w + c * of_in + block * lanes * of_out;
      const auto read = [&](int i, int j) {
        const int tap = p.turned ? 8 - 3 * i - j : 3 * i + j;
        Vector value;
        for (std::int64_t l = 0; l < lanes; ++l) value[l] = from[tap + l * of_out];
        return value;
      };
      transform(transform_kernel, read, writer(to, window * step, step));
    }
  };
  parallel_for(out / lanes, std::max<std::int64_t>(1, default_grain / (in * 9 * lanes)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto block = begin; block < end; ++block) transform_block(block);
               });
}

/// The transformed kernels. From their second use on they are kept with the kernels until these change: in
/// training there is none, and they are four times as large.
inline Buffer transformed(const Problem& p, const CpuArray& kernels) {
  constexpr std::uint64_t number = std::uint64_t{1} << 16;  // above those of oneDNN's layouts
  FormKey key{number + p.turned, {}};
  std::copy(kernels.shape().begin(), kernels.shape().end(), key.extents);
  const auto make = [&] {
    taut::cpu::detail::kernel_conversions.fetch_add(1, std::memory_order_relaxed);
    auto form = Buffer::allocate(static_cast<std::size_t>(places * p.kernel_step()) * sizeof(float));
    transform_kernels(p, kernels.data(), reinterpret_cast<float*>(form.data()));
    return form;
  };
  const Buffer kept = kernels.buffer().form_if_reused(key, make);
  return kept ? kept : make();
}

/// The transforms of some tiles: `from` and `to` [place][tile][channel] of the two images.
struct Workspace {
  std::int64_t from_step, to_step;  ///< from place to place, and from one cache set to another
  Buffer memory;
  float *from, *to;

  Workspace(const Problem& p, std::int64_t tiles)
      : from_step(tiles * p.from.channels + lanes),
        to_step(tiles * p.to.channels + lanes),
        memory(Buffer::allocate(static_cast<std::size_t>(places * (from_step + to_step)) * sizeof(float))),
        from(reinterpret_cast<float*>(memory.data())),
        to(from + places * from_step) {}
};

/// How many tiles a thread takes at once: in as few turns as it can, of no more than half of a second-level
/// cache of 2 MiB has room for, or than make up for the `reads` of the transformed kernels that a turn costs.
inline std::int64_t tiles_at_once(const Problem& p, std::int64_t tiles, std::int64_t reads) {
  constexpr std::int64_t floats = std::int64_t{1} << 18, height = blocked::Sizes<float>::height;
  const auto in = p.from.channels, out = p.to.channels;
  const auto most = std::max(
      {height, floats / (places * (in + out)) / height * height, reads * in * out / (2 * (in + out))});
  const auto each = (tiles + threads() - 1) / threads(), turns = (each + most - 1) / most;
  return blocked::padded((each + turns - 1) / turns, blocked::tile_unit);
}

/// m = v u at the places [first, last), for `count` tiles.
inline void multiply(const Problem& p, std::int64_t first, std::int64_t last, std::int64_t count,
                     const float* u, Workspace& w) {
  constexpr std::int64_t height = blocked::Sizes<float>::height;
  const auto in = p.from.channels, out = p.to.channels;
  for (auto place = first; place < last; ++place)
    for (std::int64_t column = 0; column < out; column += 2 * lanes) {
      const auto vectors = std::min<std::int64_t>(2, (out - column) / lanes);
      const blocked::View<float> kernels{u + place * p.kernel_step() + column * in, vectors * lanes, 1};
      const float* const v = w.from + place * w.from_step;
      float* const m = w.to + place * w.to_step + column;
      for (std::int64_t t = 0; t < count; t += height) {
        const auto units =
            std::min(height, blocked::padded(count - t, blocked::tile_unit)) / blocked::tile_unit;
        blocked::tile_kernel<float>(
            units, vectors)({in, {v + t * in, in, 1}, kernels, nullptr, 0, m + t * out, out});
      }
    }
}

/// y = the convolution of x with transformed kernels.
inline void convolve(const Problem& p, const float* x, const float* u, const ConvEpilogue& epilogue,
                     float* y) {
  const auto tiles = p.tiles();
  if (p.kernels_prevail()) {
    Workspace w(p, blocked::padded(tiles, blocked::tile_unit));
    parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      transform_windows(p, x, begin, end, w.from + begin * p.from.channels, w.from_step);
    });
    parallel_for(places, 1,
                 [&](std::int64_t begin, std::int64_t end) { multiply(p, begin, end, tiles, u, w); });
    parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      write_tiles(p, w.to + begin * p.to.channels, w.to_step, begin, end, epilogue, y);
    });
    return;
  }
  const auto most = tiles_at_once(p, tiles, 1);
  parallel_for((tiles + most - 1) / most, 1, [&](std::int64_t begin, std::int64_t end) {
    Workspace w(p, most);
    for (auto t = begin * most; t < std::min(tiles, end * most); t += most) {
      const auto stop = std::min(tiles, t + most);
      transform_windows(p, x, t, stop, w.from, w.from_step);
      multiply(p, 0, places, stop - t, u, w);
      write_tiles(p, w.to, w.to_step, t, stop, epilogue, y);
    }
  });
}

/// The tiles [begin, end) of the gradient by the result, transformed: z [place][tile][channel].
inline void transform_tiles(const Problem& p, const float* dy, std::int64_t begin, std::int64_t end, float* z,
                            std::int64_t step) {
  for (auto t = begin; t < end; ++t) {
    const Place at(p, t);
    for (std::int64_t block = 0; block < p.to.blocks(); ++block) {
      const float* plane = dy + (at.image * p.to.blocks() + block) * p.to.pixels() * lanes;
      float* const to = z + (t - begin) * p.to.channels + block * lanes;
      transform_pixels(plane, p.to, at.row, at.column, transform_tile, writer(to, window * step, step));
    }
  }
}

/// u += vᵀ z at the places [first, last), or = if `fresh`, in the order of transformed kernels.
inline void multiply_adjoint(const Problem& p, std::int64_t first, std::int64_t last, std::int64_t count,
                             const Workspace& w, float* u, bool fresh) {
  constexpr std::int64_t height = blocked::Sizes<float>::height;
  const auto in = p.from.channels, out = p.to.channels;
  for (auto place = first; place < last; ++place)
    for (std::int64_t column = 0; column < out; column += 2 * lanes) {
      const auto vectors = std::min<std::int64_t>(2, (out - column) / lanes), width = vectors * lanes;
      const float* const v = w.from + place * w.from_step;
      const float* const z = w.to + place * w.to_step + column;
      for (std::int64_t c = 0; c < in; c += height) {
        float* const to = u + place * p.kernel_step() + column * in + c * width;
        blocked::tile_kernel<float>(std::min(height, in - c) / blocked::tile_unit, vectors)(
            {count, {v + c, 1, in}, {z, out, 1}, fresh ? nullptr : to, width, to, width});
      }
    }
}

/// dw = the kernels that `parts` of their transforms, `step` apart, add up to.
inline void gather_kernels(const Problem& p, const float* u, std::int64_t parts, std::int64_t step,
                           float* dw) {
  const auto in = p.from.channels, out = p.to.channels;
  constexpr std::int64_t ahead = 4;  // processors foresee no more than a few streams of reads
  const auto gather_block = [=](std::int64_t block) {
    const auto panel = block / 2 * 2, width = std::min<std::int64_t>(2, out / lanes - panel) * lanes;
    const float* from = u + panel * lanes * in + block % 2 * lanes;
    float* to = dw + block * lanes * in * 9;
    for (std::int64_t c = 0; c < in; ++c, from += width, to += 9) {
      const auto read = [=](int i, int j) {
        const float* at = from + (i * window + j) * p.kernel_step();
        Vector sum{};
        for (std::int64_t part = 0; part < parts; ++part, at += step) {
          __builtin_prefetch(at + ahead * width);
          sum += blocked::load(at);
        }
        return sum;
      };
      transform(kernel_of_products, read, [=](int i, int j, const Vector& value) {
        for (std::int64_t l = 0; l < lanes; ++l) to[l * in * 9 + i * 3 + j] = value[l];
      });
    }
  };
  parallel_for(out / lanes, std::max<std::int64_t>(1, default_grain / (in * places * lanes)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto block = begin; block < end; ++block) gather_block(block);
               });
}

/// dw = the gradient by the kernels of a convolution of x, for the gradient dy by its result. Each thread
/// adds up the transformed kernels of its share of the tiles, or of all tiles its share of them.
inline void differentiate(const Problem& p, const float* x, const float* dy, float* dw) {
  const auto tiles = p.tiles(), size = places * p.kernel_step();
  const auto most = tiles_at_once(p, tiles, 2);
  const auto parts = p.kernels_prevail() ? 1 : std::min<std::int64_t>(threads(), (tiles + most - 1) / most);
  const auto sums = Buffer::allocate(static_cast<std::size_t>(parts * size) * sizeof(float));
  float* const u = reinterpret_cast<float*>(sums.data());
  if (p.kernels_prevail()) {
    Workspace w(p, tiles);
    parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      transform_windows(p, x, begin, end, w.from + begin * p.from.channels, w.from_step);
      transform_tiles(p, dy, begin, end, w.to + begin * p.to.channels, w.to_step);
    });
    parallel_for(places, 1, [&](std::int64_t begin, std::int64_t end) {
      multiply_adjoint(p, begin, end, tiles, w, u, true);
    });
    return gather_kernels(p, u, parts, size, dw);
  }
  const auto share = (tiles + parts - 1) / parts;
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    Workspace w(p, most);
    for (auto part = first; part < last; ++part) {
      const auto begin = part * share, end = std::min(tiles, begin + share);
      for (auto t = begin; t < end; t += most) {
        const auto stop = std::min(end, t + most);
        transform_windows(p, x, t, stop, w.from, w.from_step);
        transform_tiles(p, dy, t, stop, w.to, w.to_step);
        multiply_adjoint(p, 0, places, stop - t, w, u + part * size, t == begin);
      }
    }
  });
  gather_kernels(p, u, parts, size, dw);
}

}  // namespace taut::cpu::winograd
