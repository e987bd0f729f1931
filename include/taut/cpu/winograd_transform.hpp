#pragma once
// The transforms of Winograd's F(4 x 4, 3 x 3) and their adjoints, of squares of vectors.

#include <cstdint>

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

}  // namespace taut::cpu::winograd
