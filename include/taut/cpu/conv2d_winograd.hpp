#pragma once
// Convolutions of 3 x 3 with stride 1 by Winograd's algorithm F(4 x 4, 3 x 3): Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2015.
//
// The result is cut into tiles of 4 x 4. A tile depends on 6 x 6 pixels of the image; transformed, these are
// 36 vectors of channels, each of which meets one matrix of transformed kernels; transformed back, the 36
// products are the tile. That is 36 multiplications where the definition has 144. A thread takes some tiles
// at a time through all three stages, so few that what passes from stage to stage stays in its second-level
// cache. Images lie in blocks of as many channels as a SIMD register holds, kernels are transformed once and
// kept until they change.

#include <algorithm>
#include <cstdint>

#include "array.hpp"
#include "conv_ending.hpp"
#include "conv_geometry.hpp"
#include "gemm_tile.hpp"

namespace taut::cpu::winograd {

inline constexpr std::int64_t lanes = blocked::Sizes<float>::lanes;
inline constexpr int tile = 4, window = 6, places = window * window;

typedef float Vector __attribute__((vector_size(blocked::vector_bytes)));

/// A row of a tile, window or kernel, for as many channels as a vector holds.
template <int n> struct Row { Vector at[n]; };

// The transforms evaluate polynomials at 0, ±a, ±b and infinity. With these a and b, which are exact,
// rounding errors are a fraction of those with the textbook's 1 and 2.
inline constexpr float a = 0.625f, b = 1.5f, a2 = a * a, b2 = b * b, a3 = a2 * a, b3 = b2 * b;
inline constexpr float at_0 = 1 / (a2 * b2), at_a = 1 / (2 * a2 * (a2 - b2)), at_b = 1 / (2 * b2 * (b2 - a2));

/// Bᵀ d: of a row of an image's window.
inline Row<6> transform_window(const Row<6>& d) {
  const Vector even_a = d.at[4] - b2 * d.at[2], odd_a = d.at[3] - b2 * d.at[1];
  const Vector even_b = d.at[4] - a2 * d.at[2], odd_b = d.at[3] - a2 * d.at[1];
  return {{d.at[4] - (a2 + b2) * d.at[2] + a2 * b2 * d.at[0], even_a + a * odd_a, even_a - a * odd_a,
           even_b + b * odd_b, even_b - b * odd_b, d.at[5] - (a2 + b2) * d.at[3] + a2 * b2 * d.at[1]}};
}

/// G w: of a row of a kernel.
inline Row<6> transform_kernel(const Row<3>& w) {
  const Vector even_a = at_a * w.at[0] + at_a * a2 * w.at[2], even_b = at_b * w.at[0] + at_b * b2 * w.at[2];
  return {{at_0 * w.at[0], even_a + at_a * a * w.at[1], even_a - at_a * a * w.at[1],
           even_b + at_b * b * w.at[1], even_b - at_b * b * w.at[1], w.at[2]}};
}

/// Aᵀ m: a row of the tile from a row of products.
inline Row<4> tile_of_products(const Row<6>& m) {
  const Vector even_a = m.at[1] + m.at[2], odd_a = m.at[1] - m.at[2];
  const Vector even_b = m.at[3] + m.at[4], odd_b = m.at[3] - m.at[4];
  return {{m.at[0] + even_a + even_b, a * odd_a + b * odd_b, a2 * even_a + b2 * even_b,
           m.at[5] + a3 * odd_a + b3 * odd_b}};
}

/// A y: the adjoint of `tile_of_products`, of a row of a tile's gradient.
inline Row<6> transform_tile(const Row<4>& y) {
  const Vector even_a = y.at[0] + a2 * y.at[2], odd_a = a * y.at[1] + a3 * y.at[3];
  const Vector even_b = y.at[0] + b2 * y.at[2], odd_b = b * y.at[1] + b3 * y.at[3];
  return {{y.at[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, y.at[3]}};
}

/// Gᵀ u: the adjoint of `transform_kernel`.
inline Row<3> kernel_of_products(const Row<6>& u) {
  const Vector even_a = at_a * (u.at[1] + u.at[2]), even_b = at_b * (u.at[3] + u.at[4]);
  return {{at_0 * u.at[0] + even_a + even_b, at_a * a * (u.at[1] - u.at[2]) + at_b * b * (u.at[3] - u.at[4]),
           u.at[5] + a2 * even_a + b2 * even_b}};
}

/// Transforms both axes of a square: element (i, j) is `read(i, j)`, the result's is given to `write(i, j,
/// value)`.
template <int n, int m, class Read, class Write>
[[gnu::always_inline]] inline void transform(Row<m> (*const row)(const Row<n>&), const Read& read,
                                             const Write& write) {
  Row<n> columns[m];
#pragma GCC unroll 6
  for (int i = 0; i < n; ++i) {
    Row<n> from;
#pragma GCC unroll 6
    for (int j = 0; j < n; ++j) from.at[j] = read(i, j);
    const Row<m> to = row(from);
#pragma GCC unroll 6
    for (int j = 0; j < m; ++j) columns[j].at[i] = to.at[j];
  }
#pragma GCC unroll 6
  for (int j = 0; j < m; ++j) {
    const Row<m> to = row(columns[j]);
#pragma GCC unroll 6
    for (int i = 0; i < m; ++i) write(i, j, to.at[i]);
  }
}

/// Reads a square whose neighbours are `row` and `column` floats apart.
inline auto reader(const float* from, std::int64_t row, std::int64_t column) {
  return [=](int i, int j) -> Vector { return blocked::load(from + i * row + j * column); };
}

inline auto writer(float* to, std::int64_t row, std::int64_t column) {
  return [=](int i, int j, const Vector& value) { blocked::store<float>(to + i * row + j * column, value); };
}

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
};

/// Whether the algorithm can compute this convolution and its gradients.
inline bool applies(const ConvGeometry& g) {
  return g.kh == 3 && g.kw == 3 && g.groups == 1 && g.stride == HeightWidth(1) &&
         g.dilation == HeightWidth(1) && g.padding.h <= 2 && g.padding.w <= 2 && g.padding.h >= 0 &&
         g.padding.w >= 0 && g.c % lanes == 0 && g.out % lanes == 0;
}

/// Whether it needs no trial against the direct algorithm: with tiles enough for all threads and to make up
/// for the transformation of the kernels, and few of their pixels outside of the image. It takes 0.4 to 0.9
/// of the time then.
inline bool pays(const ConvGeometry& g) {
  const auto along = [](std::int64_t pixels) { return (pixels + tile - 1) / tile; };
  const auto tiles = g.n * along(g.oh) * along(g.ow);
  return std::min(g.c, g.out) >= 32 && tiles >= 48 * threads() && 4 * tiles >= std::max(g.c, g.out) &&
         8 * g.n * g.oh * g.ow >= 7 * tiles * tile * tile;
}

inline Problem forward(const ConvGeometry& g) {
  return {{g.c, g.h, g.w}, {g.out, g.oh, g.ow}, g.n, g.padding.h, g.padding.w, false};
}

inline Problem gradient(const ConvGeometry& g) {
  return {{g.out, g.oh, g.ow}, {g.c, g.h, g.w}, g.n, 2 - g.padding.h, 2 - g.padding.w, true};
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
inline Vector relu(Vector x) { return x < 0 ? Vector{} : x; }

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
  const auto in = p.from.channels, out = p.to.channels, step = in * out;
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
  const auto key = [&](std::uint64_t layout) {
    FormKey result{layout, {}};
    std::copy(kernels.shape().begin(), kernels.shape().end(), result.extents);
    return result;
  };
  const FormKey own = key(number + p.turned), used_before = key(number + 2 + p.turned);
  const Buffer& from = kernels.buffer();
  Buffer form = from.form(own);
  if (form) return form;
  taut::cpu::detail::kernel_conversions.fetch_add(1, std::memory_order_relaxed);
  form = Buffer::allocate(static_cast<std::size_t>(places * p.from.channels * p.to.channels) * sizeof(float));
  transform_kernels(p, kernels.data(), reinterpret_cast<float*>(form.data()));
  if (from.form(used_before))
    from.keep_form(own, form);
  else
    from.keep_form(used_before, Buffer::allocate(0));
  return form;
}

/// In how large parts a thread takes `tiles` tiles: in as few of at most `most` as there have to be.
inline std::int64_t tiles_at_once(std::int64_t tiles, std::int64_t most) {
  const auto each = (tiles + threads() - 1) / threads(), turns = (each + most - 1) / most;
  return blocked::padded((each + turns - 1) / turns, blocked::tile_unit);
}

/// How many tiles fill half of a second-level cache of 2 MiB with what passes from stage to stage.
inline std::int64_t tiles_in_cache(std::int64_t channels) {
  constexpr std::int64_t floats = std::int64_t{1} << 18, height = blocked::Sizes<float>::height;
  return std::max(height, floats / (places * channels) / height * height);
}

/// m = v u at each place, for `count` tiles.
inline void multiply(std::int64_t in, std::int64_t out, std::int64_t count, const float* v,
                     std::int64_t v_step, const float* u, float* m, std::int64_t m_step) {
  constexpr std::int64_t height = blocked::Sizes<float>::height;
  for (std::int64_t place = 0; place < places; ++place, v += v_step, u += in * out, m += m_step)
    for (std::int64_t column = 0; column < out; column += 2 * lanes) {
      const auto vectors = std::min<std::int64_t>(2, (out - column) / lanes);
      const blocked::View<float> kernels{u + column * in, vectors * lanes, 1};
      for (std::int64_t t = 0; t < count; t += height) {
        const auto units =
            std::min(height, blocked::padded(count - t, blocked::tile_unit)) / blocked::tile_unit;
        blocked::tile_kernel<float>(
            units, vectors)({in, {v + t * in, in, 1}, kernels, nullptr, 0, m + t * out + column, out});
      }
    }
}

/// y = the convolution of x with transformed kernels.
inline void convolve(const Problem& p, const float* x, const float* u, const ConvEpilogue& epilogue,
                     float* y) {
  const auto in = p.from.channels, out = p.to.channels, tiles = p.tiles();
  const auto most = tiles_at_once(tiles, tiles_in_cache(in + out));
  const auto v_step = most * in + lanes,
             m_step = most * out + lanes;  // places apart from one cache set to another
  parallel_for((tiles + most - 1) / most, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto scratch =
        Buffer::allocate(static_cast<std::size_t>(places * (v_step + m_step)) * sizeof(float));
    float* const v = reinterpret_cast<float*>(scratch.data());
    float* const m = v + places * v_step;
    for (auto t = begin * most; t < std::min(tiles, end * most); t += most) {
      const auto stop = std::min(tiles, t + most);
      transform_windows(p, x, t, stop, v, v_step);
      multiply(in, out, stop - t, v, v_step, u, m, m_step);
      write_tiles(p, m, m_step, t, stop, epilogue, y);
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

/// u += vᵀ z at each place, or = if `first`, in the order of transformed kernels.
inline void multiply_adjoint(std::int64_t in, std::int64_t out, std::int64_t count, const float* v,
                             std::int64_t v_step, const float* z, std::int64_t z_step, float* u, bool first) {
  constexpr std::int64_t height = blocked::Sizes<float>::height;
  for (std::int64_t place = 0; place < places; ++place, v += v_step, z += z_step, u += in * out)
    for (std::int64_t column = 0; column < out; column += 2 * lanes) {
      const auto vectors = std::min<std::int64_t>(2, (out - column) / lanes), width = vectors * lanes;
      for (std::int64_t c = 0; c < in; c += height) {
        float* const to = u + column * in + c * width;
        blocked::tile_kernel<float>(std::min(height, in - c) / blocked::tile_unit, vectors)(
            {count, {v + c, 1, in}, {z + column, out, 1}, first ? nullptr : to, width, to, width});
      }
    }
}

/// dw = the kernels that `parts` of their transforms, `step` apart, add up to.
inline void gather_kernels(const Problem& p, const float* u, std::int64_t parts, std::int64_t step,
                           float* dw) {
  const auto in = p.from.channels, out = p.to.channels;
  const auto gather_block = [=](std::int64_t block) {
    const auto panel = block / 2 * 2, width = std::min<std::int64_t>(2, out / lanes - panel) * lanes;
    const float* from = u + panel * lanes * in + block % 2 * lanes;
    float* to = dw + block * lanes * in * 9;
    for (std::int64_t c = 0; c < in; ++c, from += width, to += 9) {
      const auto read = [=](int i, int j) {
        const float* at = from + (i * window + j) * in * out;
        Vector sum = blocked::load(at);
        for (std::int64_t part = 1; part < parts; ++part) sum += blocked::load(at + part * step);
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
/// adds up the transformed kernels of its share of the tiles.
inline void differentiate(const Problem& p, const float* x, const float* dy, float* dw) {
  const auto in = p.from.channels, out = p.to.channels, tiles = p.tiles(), size = places * in * out;
  // The sums go through the caches once for each turn: a turn is to be no shorter than they are.
  const auto most = tiles_at_once(tiles, std::max(tiles_in_cache(in + out), in * out / (in + out)));
  const auto parts = std::min<std::int64_t>(threads(), (tiles + most - 1) / most);
  const auto share = (tiles + parts - 1) / parts;
  const auto v_step = most * in + lanes, z_step = most * out + lanes;
  const auto sums = Buffer::allocate(static_cast<std::size_t>(parts * size) * sizeof(float));
  float* const u = reinterpret_cast<float*>(sums.data());
  parallel_for(parts, 1, [&](std::int64_t first, std::int64_t last) {
    const auto scratch =
        Buffer::allocate(static_cast<std::size_t>(places * (v_step + z_step)) * sizeof(float));
    float* const v = reinterpret_cast<float*>(scratch.data());
    float* const z = v + places * v_step;
    for (auto part = first; part < last; ++part) {
      const auto begin = part * share, end = std::min(tiles, begin + share);
      for (auto t = begin; t < end; t += most) {
        const auto stop = std::min(end, t + most);
        transform_windows(p, x, t, stop, v, v_step);
        transform_tiles(p, dy, t, stop, z, z_step);
        multiply_adjoint(in, out, stop - t, v, v_step, z, z_step, u + part * size, t == begin);
      }
    }
  });
  gather_kernels(p, u, parts, size, dw);
}

}  // namespace taut::cpu::winograd
