#pragma once
// What the portable matrix product is made of: the register tile, written with the compiler's own vectors (of
// the widest kind that the program is compiled for, without any header), and the copies that operands are
// packed into.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace taut::cpu::blocked {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64, tile_unit = 4;  // 32 registers: tiles of 12 rows by 2 vectors
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32, tile_unit = 2;  // 16 registers: tiles of 6 rows by 2 vectors
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16, tile_unit = 4;
#else
inline constexpr int vector_bytes = 16, tile_unit = 2;
#endif

/// n rounded up to a multiple of `unit`.
inline std::int64_t padded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

/// Sizes of the register tile and of the cache blocks, in elements of type E.
template <class E> struct Sizes {
  static constexpr std::int64_t lanes = vector_bytes / sizeof(E);
  static constexpr std::int64_t height = 3 * tile_unit, width = 2 * lanes;
  static constexpr std::int64_t k_block = 1152 / sizeof(E);  // a panel of B is 36 KiB with 64-byte vectors
  static constexpr std::int64_t m_block = 20 * height;       // a block of A is 270 KiB at most
};

/// A vector of E that may lie at any address E may.
template <class E> struct VectorOf {
  typedef E type __attribute__((vector_size(vector_bytes), aligned(alignof(E)), may_alias));
};
template <class E> using Vector = typename VectorOf<E>::type;

template <class E> Vector<E> load(const E* p) { return *reinterpret_cast<const Vector<E>*>(p); }
template <class E> void store(E* p, Vector<E> v) { *reinterpret_cast<Vector<E>*>(p) = v; }

/// Element (i, j) lies at data[i * row + j * column].
template <class E> struct View {
  const E* data;
  std::int64_t row, column;

  View at(std::int64_t i, std::int64_t j) const { return {data + i * row + j * column, row, column}; }
};

/// One tile of C = init + A B. `init` may be null; with a row stride of 0 it is one row for all. With `relu`,
/// elements up to 0 become 0.
template <class E> struct Tile {
  std::int64_t k;
  View<E> a, b;
  const E* init;
  std::int64_t init_row;
  E* c;
  std::int64_t c_row;
  bool relu = false;
};

/// Computes a tile of H rows and V vectors; the columns of B must be contiguous.
template <class E, int H, int V> void multiply_tile(const Tile<E>& tile) {
  constexpr std::int64_t lanes = Sizes<E>::lanes;
  const View<E> a = tile.a, b = tile.b;
  Vector<E> sum[H][V];
#pragma GCC unroll 16
  for (int i = 0; i < H; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sum[i][v] = tile.init ? load(tile.init + i * tile.init_row + v * lanes) : Vector<E>{};
      __builtin_prefetch(tile.c + i * tile.c_row + v * lanes, 1);
    }
  // One pointer for each `tile_unit` rows: with an offset a row, the compiler would run out of registers.
  const E* rows[H / tile_unit];
#pragma GCC unroll 4
  for (int u = 0; u < H / tile_unit; ++u) rows[u] = a.data + u * tile_unit * a.row;
#pragma GCC unroll 4
  for (std::int64_t p = 0; p < tile.k; ++p) {
    // Unrolled, since what advances pointers and counts takes ports that the multiply-adds need.
    Vector<E> row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = load(b.data + p * b.row + v * lanes);
#pragma GCC unroll 4
    for (int u = 0; u < H / tile_unit; ++u) {
#pragma GCC unroll 4
      for (int i = 0; i < tile_unit; ++i) {
        const E factor = rows[u][i * a.row];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[u * tile_unit + i][v] += factor * row[v];
      }
      rows[u] += a.column;
    }
  }
  if (tile.relu) {
    const Vector<E> zero{};
#pragma GCC unroll 16
    for (int i = 0; i < H; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = sum[i][v] <= zero ? zero : sum[i][v];
  }
#pragma GCC unroll 16
  for (int i = 0; i < H; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(tile.c + i * tile.c_row + v * lanes, sum[i][v]);
}

/// The kernel for tiles of `units` times `tile_unit` rows (1 to 3) and `vectors` of columns (1 or 2).
template <class E> auto tile_kernel(std::int64_t units, std::int64_t vectors) {
  constexpr int u = tile_unit;
  using Kernel = void (*)(const Tile<E>&);
  static constexpr Kernel kernels[2][3] = {
      {multiply_tile<E, u, 1>, multiply_tile<E, 2 * u, 1>, multiply_tile<E, 3 * u, 1>},
      {multiply_tile<E, u, 2>, multiply_tile<E, 2 * u, 2>, multiply_tile<E, 3 * u, 2>}};
  return kernels[vectors - 1][units - 1];
}

/// Interleaves two vectors: `low` has their first halves, `high` their second halves.
template <class E, std::size_t... I>
void interleave(const Vector<E>& x, const Vector<E>& y, Vector<E>& low, Vector<E>& high,
                std::index_sequence<I...>) {
  constexpr std::size_t lanes = sizeof...(I);
  const Vector<E> first = __builtin_shufflevector(x, y, (I / 2 + I % 2 * lanes)...);
  high = __builtin_shufflevector(x, y, (lanes / 2 + I / 2 + I % 2 * lanes)...);
  low = first;
}

/// Transposes the block of `lanes` columns and `rows` rows (`from_row` apart) at `from` to `to` (rows
/// `to_row` apart). Interleaving row i with row i + lanes / 2, log2(lanes) times over, is a transposition.
/// Fewer rows than `lanes` are made up by copies of the last one.
template <class E>
void transpose_block(std::int64_t rows, const E* from, std::int64_t from_row, E* to, std::int64_t to_row) {
  constexpr int lanes = static_cast<int>(Sizes<E>::lanes);
  Vector<E> x[lanes], y[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    x[i] = load(from);
    if (i + 1 < rows) from += from_row;
  }
#pragma GCC unroll 4
  for (int done = 1; done < lanes; done *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < lanes / 2; ++i)
      interleave<E>(x[i], x[i + lanes / 2], y[2 * i], y[2 * i + 1], std::make_index_sequence<lanes>{});
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store(to + i * to_row, x[i]);
}

/// Copies the k x n panel `b` to `to`, its rows `width` apart. Columns up to a whole vector become those of
/// some finite or infinite values that nobody reads the products of.
template <class E> void pack_panel(View<E> b, std::int64_t k, std::int64_t n, E* to) {
  constexpr std::int64_t lanes = Sizes<E>::lanes, width = Sizes<E>::width;
  const bool rows_contiguous = b.column == 1, columns_contiguous = b.row == 1 && k >= lanes;
  for (std::int64_t j = 0; j < n; j += lanes) {
    const std::int64_t columns = std::min(lanes, n - j);
    if (!rows_contiguous && columns_contiguous) {
      for (std::int64_t p = 0; p < k; p += lanes) {
        const std::int64_t q = std::min(p, k - lanes);  // the last block overlaps the one before
        transpose_block(columns, b.at(q, j).data, b.column, to + q * width + j, width);
      }
      continue;
    }
    for (std::int64_t p = 0; p < k; ++p) {
      const E* const from = b.at(p, j).data;
      E* const row = to + p * width + j;
      if (rows_contiguous && columns == lanes)
        store(row, load(from));
      else
        for (std::int64_t l = 0; l < lanes; ++l) row[l] = l < columns ? from[l * b.column] : E(0);
    }
  }
}

/// Copies m <= `tile_unit` rows of A to `to`, k contiguous, followed by rows of zeros up to `tile_unit`.
template <class E> View<E> pack_rows(View<E> a, std::int64_t m, std::int64_t k, E* to) {
  for (std::int64_t i = 0; i < tile_unit; ++i)
    for (std::int64_t p = 0; p < k; ++p) to[i * k + p] = i < m ? a.data[i * a.row + p * a.column] : E(0);
  return {to, k, 1};
}

}  // namespace taut::cpu::blocked
