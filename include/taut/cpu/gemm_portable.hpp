#pragma once
// The portable matrix product: blocked, register-tiled and vectorised, with no library beneath.
//
// C is cut into tiles of `height` rows and `width` columns that live in registers while one block of k
// passes: each step multiplies a row of B (vectors) with `height` elements of A (broadcast). A panel of B,
// k_block x width, stays in the first-level cache while all rows of A pass by it. Operands are read where
// they lie if their layout suits that, else from packed copies; only B with k contiguous must be transposed
// on the way. Every element of C is one chain of multiply-adds over k, whatever the tile that computes it and
// the number of threads, so results do not depend on either.
//
// A product of a few rows would spend its time on that transposition. It takes dot products of A's rows and
// B's columns instead, a chain for each lane of a vector: whether it does depends on its own shape only.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "gemm_tile.hpp"
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
  bool relu = false;      ///< elements of C up to 0 become 0; NaN stays
  bool packed_b = false;  ///< B is what `pack_columns` made of it

  friend bool operator==(const Gemm&, const Gemm&) = default;
};

namespace blocked {

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

/// C = A B + bias on one thread, and of that the ReLU if it is wanted; k > 0. `panel` is the number of
/// elements from one panel of B to the next where it is packed, else 0.
template <class E>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, View<E> a, View<E> b, std::int64_t panel,
              const E* bias, E* c, std::int64_t c_row, bool relu) {
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
        const View<E> columns = panel ? View<E>{b.data + j / S::width * panel, S::width, 1} : b.at(0, j);
        Tile<E> tile{depth, a.at(i, p), columns.at(p, 0), nullptr, 0, c + i * c_row + j, c_row};
        tile.relu = relu && p + depth == k;
        if (p > 0) {
          tile.init = tile.c;
          tile.init_row = c_row;
        } else if (bias) {
          tile.init = bias + j;
        }
        if (!panel && (b.column != 1 || width % S::lanes)) {
          pack_panel(tile.b, depth, width, space.b);
          tile.b = {space.b, S::width, 1};
        }
        multiply_panel(height, width, tile, last_rows);
      }
    }
}

/// Whether C = op(A) op(B) is computed by `multiply_by_dots`. The sums over lanes at the end of each have to
/// be outweighed by long rows; those of B are read anew for each row of A. (Measured with AVX-512: for n =
/// 128 and k = 784, 1 to 3 rows take 4.6, 5.0 and 7.3 us, against 15.7; 4 rows of k = 128 take as long by
/// tiles.)
inline bool takes_dots(const Gemm& g) {
  return g.m <= 4 && g.k >= 64 * g.m && g.transpose_b && !g.packed_b && (!g.transpose_a || g.m == 1);
}

/// The products of a row with N columns, both contiguous, the columns `step` apart.
template <int N, class E>
void dot_columns(std::int64_t k, const E* row, const E* columns, std::int64_t step, const E* bias, E* c,
                 bool relu) {
  constexpr std::int64_t lanes = Sizes<E>::lanes;
  Vector<E> sums[N] = {};
  std::int64_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    const Vector<E> x = load(row + p);
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) sums[j] += x * load(columns + j * step + p);
  }
  for (int j = 0; j < N; ++j) {
    E total = bias ? bias[j] : E(0);
    for (std::int64_t l = 0; l < lanes; ++l) total += sums[j][l];
    for (std::int64_t q = p; q < k; ++q) total += row[q] * columns[j * step + q];
    c[j] = relu && total <= E(0) ? E(0) : total;
  }
}

/// The same for few rows of A with k contiguous, and B with k contiguous.
template <class E>
void multiply_by_dots(std::int64_t m, std::int64_t n, std::int64_t k, const E* a, const E* b, const E* bias,
                      E* c, std::int64_t c_row, bool relu) {
  constexpr int at_once = 8;  // enough chains to hide the latency of multiply-adds
  for (std::int64_t j = 0, step; j < n; j += step) {
    const bool many = j + at_once <= n;
    step = many ? at_once : 1;
    for (std::int64_t i = 0; i < m; ++i)
      (many ? dot_columns<at_once, E> : dot_columns<1, E>)(k, a + i * k, b + j * k, k,
                                                           bias ? bias + j : nullptr, c + i * c_row + j,
                                                           relu);
  }
}

/// How one product is divided among threads: into rows x columns rectangles of C.
struct Grid {
  std::int64_t rows = 1, columns = 1;
};

/// The multiplications that take as long as an element that another core has written, and perhaps holds.
inline constexpr std::int64_t products_per_crossing = 16;

/// The grid of at most `parts` rectangles with the least work for the busiest thread, packing and what passes
/// between cores included: an operand that several threads read, and a result cut across its rows, since
/// what follows takes it in contiguous parts. Columns are divided in multiples of `unit`.
inline Grid choose_grid(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t unit,
                        std::int64_t parts) {
  Grid best;
  std::int64_t best_work = -1;
  for (std::int64_t rows = 1; rows <= parts; ++rows) {
    const Grid grid{rows, parts / rows};
    const std::int64_t height = padded((m + grid.rows - 1) / grid.rows, tile_unit);
    const std::int64_t width = padded((n + grid.columns - 1) / grid.columns, unit);
    const std::int64_t crossing =
        (grid.rows > 1 ? k * width : 0) + (grid.columns > 1 ? k * height + height * width : 0);
    const std::int64_t work = k * (height * width + 4 * (height + width)) + products_per_crossing * crossing;
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

/// The multiplications that occupy one more thread: with fewer, a parallel region would cost more than it
/// saves.
inline constexpr std::int64_t products_per_thread = std::int64_t{1} << 17;

/// How the elements of op(B) lie, if it is not packed.
template <class E> View<E> columns_of(const Gemm& g, const E* b) {
  return {b, g.transpose_b ? 1 : g.n, g.transpose_b ? g.k : 1};
}

}  // namespace blocked

/// How many elements `pack_columns` writes.
template <class E> std::int64_t packed_size(const Gemm& g) {
  return blocked::padded(g.n, blocked::Sizes<E>::width) * g.k;
}

/// Packs the whole of op(B), of a batch of 1, for products that take it several times.
template <class E> void pack_columns(const Gemm& g, const E* b, E* to) {
  constexpr auto width = blocked::Sizes<E>::width;
  const auto columns = blocked::columns_of(g, b);
  parallel_for((g.n + width - 1) / width, 1 + default_grain / (1 + g.k * width),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto j = begin * width; j < std::min(g.n, end * width); j += width)
                   blocked::pack_panel(columns.at(0, j), g.k, std::min(width, g.n - j), to + j * g.k);
               });
}

/// C = op(A) op(B) + bias, and of that the ReLU if it is wanted, like `gemm`, always by the library's own
/// kernel.
template <class E> void gemm_portable(const Gemm& g, const E* a, const E* b, const E* bias, E* c) {
  using S = blocked::Sizes<E>;
  if (g.batch <= 0 || g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (std::int64_t i = 0; i < g.batch * g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j)
        c[i * g.n + j] = !bias || (g.relu && bias[j] <= E(0)) ? E(0) : bias[j];
    return;
  }
  const std::int64_t products = g.batch * g.m * g.n * g.k;
  const std::int64_t workers =
      std::clamp<std::int64_t>(products / blocked::products_per_thread, 1, threads());
  const std::int64_t unit = g.packed_b ? S::width : S::lanes;
  const blocked::Grid grid =
      g.batch < 4 * workers ? blocked::choose_grid(g.m, g.n, g.k, unit, workers) : blocked::Grid{};
  const std::int64_t cells = grid.rows * grid.columns;
  const bool dots = blocked::takes_dots(g);
  parallel_for(g.batch * cells, workers > 1 ? 1 : g.batch * cells, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t item = task / cells, cell = task % cells;
      const auto [i0, i1] = blocked::part_of(g.m, blocked::tile_unit, grid.rows, cell / grid.columns);
      const auto [j0, j1] = blocked::part_of(g.n, unit, grid.columns, cell % grid.columns);
      const blocked::View<E> item_a{a + item * g.stride_a, g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1};
      const blocked::View<E> item_b = g.packed_b ? blocked::View<E>{b + j0 * g.k, S::width, 1}
                                                 : blocked::columns_of(g, b + item * g.stride_b).at(0, j0);
      if (i0 >= i1 || j0 >= j1) continue;
      E* const out = c + (item * g.m + i0) * g.n + j0;
      const E* const added = bias ? bias + j0 : nullptr;
      if (dots)
        blocked::multiply_by_dots(i1 - i0, j1 - j0, g.k, item_a.at(i0, 0).data, item_b.data, added, out, g.n,
                                  g.relu);
      else
        blocked::multiply(i1 - i0, j1 - j0, g.k, item_a.at(i0, 0), item_b, g.packed_b ? g.k * S::width : 0,
                          added, out, g.n, g.relu);
    }
  });
}

}  // namespace taut::cpu
