#pragma once
// The portable matrix product: blocked, register-tiled and vectorised, with no library beneath.
//
// C is cut into tiles of `height` rows and `width` columns that live in registers while one block of k
// passes: each step multiplies a row of B (vectors) with `height` elements of A (broadcast). A panel of B,
// k_block x width, stays in the first-level cache while all rows of A pass by it. Operands are read where
// they lie if their layout suits that, else from packed copies; only B with k contiguous must be transposed
// on the way. Every element of C is one chain of fused multiply-adds over k whatever the tile that computes
// it and the number of threads, so results do not depend on either.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "parallel.hpp"

namespace taut::cpu {

/// One product, or a batch of them: C = op(A) op(B), where op transposes if asked to. A is [m, k] in memory,
/// or [k, m] with `transpose_a`; B is [k, n], or [n, k] with `transpose_b`; C is [m, n]. All are dense and
/// row-major.
struct Gemm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  /// Elements between the items of a batch; 0 where the whole batch shares the operand.
  std::int64_t stride_a = 0, stride_b = 0;

  friend bool operator==(const Gemm&, const Gemm&) = default;
};

namespace blocked {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64, tile_unit = 4;  // 32 registers: tiles of 12 rows by 2 vectors
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32, tile_unit = 2;  // 16 registers: tiles of 6 rows by 2 vectors
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16, tile_unit = 4;
#else
inline constexpr int vector_bytes = 16, tile_unit = 2;
#endif

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

/// One tile of C = init + A B. `init` may be null; with a row stride of 0 it is one row for all.
template <class E> struct Tile {
  std::int64_t k;
  View<E> a, b;
  const E* init;
  std::int64_t init_row;
  E* c;
  std::int64_t c_row;
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
  for (std::int64_t p = 0; p < tile.k; ++p) {
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

/// n rounded up to a multiple of `unit`.
inline std::int64_t padded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The size of equal blocks of at most `most` that cover n, a multiple of `unit`.
inline std::int64_t balanced(std::int64_t n, std::int64_t most, std::int64_t unit) {
  const std::int64_t blocks = (n + most - 1) / most;
  return padded((n + blocks - 1) / blocks, unit);
}

/// What one thread packs operands into.
template <class E> struct Workspace {
  alignas(64) E a[tile_unit * Sizes<E>::k_block];
  alignas(64) E b[Sizes<E>::k_block * Sizes<E>::width];
};

template <class E> Workspace<E>& workspace() {
  thread_local const std::unique_ptr<Workspace<E>> memory(new Workspace<E>);
  return *memory;
}

/// Copies m <= `tile_unit` rows of A to `to`, k contiguous, followed by rows of zeros up to `tile_unit`.
template <class E> View<E> pack_rows(View<E> a, std::int64_t m, std::int64_t k, E* to) {
  for (std::int64_t i = 0; i < tile_unit; ++i)
    for (std::int64_t p = 0; p < k; ++p) to[i * k + p] = i < m ? a.data[i * a.row + p * a.column] : E(0);
  return {to, k, 1};
}

/// Computes a tile at the edge of C, of which only m x n elements exist.
template <class E> void multiply_edge(std::int64_t m, std::int64_t n, Tile<E> tile) {
  using S = Sizes<E>;
  alignas(64) E whole[S::height * S::width] = {};
  if (tile.init)
    for (std::int64_t i = 0; i < m; ++i) std::copy_n(tile.init + i * tile.init_row, n, whole + i * S::width);
  E* const c = std::exchange(tile.c, whole);
  const std::int64_t c_row = std::exchange(tile.c_row, S::width);
  tile.init = whole;
  tile.init_row = S::width;
  tile_kernel<E>(padded(m, tile_unit) / tile_unit, padded(n, S::lanes) / S::lanes)(tile);
  for (std::int64_t i = 0; i < m; ++i) std::copy_n(whole + i * S::width, n, c + i * c_row);
}

/// Computes the m x n panel of C that starts at `tile`, n <= `width`. `last_rows` are those of A, packed,
/// that do not fill `tile_unit`.
template <class E> void multiply_panel(std::int64_t m, std::int64_t n, Tile<E> tile, View<E> last_rows) {
  using S = Sizes<E>;
  const auto advance = [&tile](std::int64_t rows) {
    tile.a.data += rows * tile.a.row;
    tile.c += rows * tile.c_row;
    tile.init += rows * tile.init_row;
  };
  if (n % S::lanes == 0) {
    const std::int64_t vectors = n / S::lanes;
    const auto tall = tile_kernel<E>(3, vectors);
    // The last 4 units are better computed as 2 and 2 than as 3 and 1.
    for (; m >= S::height && m / tile_unit != 4; m -= S::height, advance(S::height)) tall(tile);
    while (m >= tile_unit) {
      const std::int64_t units = std::min<std::int64_t>(m / tile_unit, 2);
      tile_kernel<E>(units, vectors)(tile);
      m -= units * tile_unit;
      advance(units * tile_unit);
    }
  } else {
    for (std::int64_t rows; m >= tile_unit; m -= rows, advance(rows)) {
      rows = std::min(S::height, m / tile_unit * tile_unit);
      multiply_edge(rows, n, tile);
    }
  }
  if (m > 0) {
    tile.a = last_rows;
    multiply_edge(m, n, tile);
  }
}

/// C = A B + bias on one thread; k > 0.
template <class E>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, View<E> a, View<E> b, const E* bias, E* c,
              std::int64_t c_row) {
  using S = Sizes<E>;
  Workspace<E>& space = workspace<E>();
  const std::int64_t k_step = balanced(k, S::k_block, S::lanes), m_step = balanced(m, S::m_block, S::height);
  for (std::int64_t p = 0; p < k; p += k_step)
    for (std::int64_t i = 0; i < m; i += m_step) {
      const std::int64_t depth = std::min(k_step, k - p), height = std::min(m_step, m - i);
      const std::int64_t odd = height % tile_unit;
      const View<E> last_rows = odd ? pack_rows(a.at(i + height - odd, p), odd, depth, space.a) : View<E>{};
      for (std::int64_t j = 0; j < n; j += S::width) {
        const std::int64_t width = std::min(S::width, n - j);
        Tile<E> tile{depth, a.at(i, p), b.at(p, j), nullptr, 0, c + i * c_row + j, c_row};
        if (p > 0) {
          tile.init = tile.c;
          tile.init_row = c_row;
        } else if (bias) {
          tile.init = bias + j;
        }
        if (b.column != 1 || width % S::lanes) {
          pack_panel(tile.b, depth, width, space.b);
          tile.b = {space.b, S::width, 1};
        }
        multiply_panel(height, width, tile, last_rows);
      }
    }
}

/// How one product is divided among threads: into rows x columns rectangles of C.
struct Grid {
  std::int64_t rows = 1, columns = 1;
};

/// The grid of at most `parts` rectangles with the least work for the busiest thread, packing included.
template <class E> Grid choose_grid(std::int64_t m, std::int64_t n, std::int64_t parts) {
  Grid best;
  std::int64_t best_work = -1;
  for (std::int64_t rows = 1; rows <= parts; ++rows) {
    const Grid grid{rows, parts / rows};
    const std::int64_t height = padded((m + grid.rows - 1) / grid.rows, tile_unit);
    const std::int64_t width = padded((n + grid.columns - 1) / grid.columns, Sizes<E>::lanes);
    const std::int64_t work = height * width + 4 * (height + width);
    if (best_work < 0 || work < best_work) {
      best = grid;
      best_work = work;
    }
  }
  return best;
}

/// The part `index` of `parts` of [0, n), in multiples of `unit`; may be empty.
inline std::pair<std::int64_t, std::int64_t> part_of(std::int64_t n, std::int64_t unit, std::int64_t parts,
                                                     std::int64_t index) {
  const std::int64_t units = padded(n, unit) / unit;
  return {std::min(n, units * index / parts * unit), std::min(n, units * (index + 1) / parts * unit)};
}

/// Products of fewer multiplications than this stay on one thread: there a parallel region would cost more.
inline constexpr std::int64_t parallel_products = std::int64_t{1} << 18;

}  // namespace blocked

/// C = op(A) op(B) + bias like `gemm`, always by the library's own kernel.
template <class E> void gemm_portable(const Gemm& g, const E* a, const E* b, const E* bias, E* c) {
  if (g.batch <= 0 || g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (std::int64_t i = 0; i < g.batch * g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) c[i * g.n + j] = bias ? bias[j] : E(0);
    return;
  }
  const std::int64_t workers = g.batch * g.m * g.n * g.k < blocked::parallel_products ? 1 : threads();
  const blocked::Grid grid =
      g.batch < 4 * workers ? blocked::choose_grid<E>(g.m, g.n, workers) : blocked::Grid{};
  const std::int64_t cells = grid.rows * grid.columns;
  parallel_for(g.batch * cells, workers > 1 ? 1 : g.batch * cells, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t item = task / cells, cell = task % cells;
      const auto [i0, i1] = blocked::part_of(g.m, blocked::tile_unit, grid.rows, cell / grid.columns);
      const auto [j0, j1] =
          blocked::part_of(g.n, blocked::Sizes<E>::lanes, grid.columns, cell % grid.columns);
      const blocked::View<E> item_a{a + item * g.stride_a, g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1};
      const blocked::View<E> item_b{b + item * g.stride_b, g.transpose_b ? 1 : g.n, g.transpose_b ? g.k : 1};
      if (i0 < i1 && j0 < j1)
        blocked::multiply(i1 - i0, j1 - j0, g.k, item_a.at(i0, 0), item_b.at(0, j0),
                          bias ? bias + j0 : nullptr, c + (item * g.m + i0) * g.n + j0, g.n);
    }
  });
}

}  // namespace taut::cpu
