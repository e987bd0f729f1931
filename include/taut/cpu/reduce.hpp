#pragma once
// Reductions on dense arrays. Every reduction is brought to one of two loops: over contiguous rows, or down
// the columns of a matrix. Sums accumulate short runs in SIMD lanes and the runs in double, so that the error
// does not grow with the number of elements.

#include <limits>

#include "../op/reduce.hpp"
#include "channels.hpp"
#include "movement.hpp"
#include "simd.hpp"

namespace taut {

namespace cpu {

/// a + b, with runs accumulated in double.
struct SumReducer {
  template <class E> using Accumulator = std::conditional_t<std::is_floating_point_v<E>, double, E>;
  template <class E> static constexpr E start = E(0);
  template <class S> static S combine(S a, S b) { return a + b; }
};

/// The extreme element; NaN wins.
template <bool Largest> struct ExtremeReducer {
  template <class E> using Accumulator = E;
  template <class E>
  static constexpr E infinity = std::numeric_limits<E>::has_infinity ? std::numeric_limits<E>::infinity()
                                                                     : std::numeric_limits<E>::max();
  template <class E>
  static constexpr E start = Largest
                                 ? (std::numeric_limits<E>::has_infinity ? -infinity<E>
                                                                         : std::numeric_limits<E>::lowest())
                                 : infinity<E>;
  template <class S> static S combine(S a, S b) {
    if constexpr (Largest)
      return maximum(a, b);
    else
      return minimum(a, b);
  }
};

/// Packs that are accumulated, in four registers, before these are folded into the wide accumulator.
inline constexpr std::int64_t run_length = 1024;

struct Identity {
  template <class S> S operator()(S x) const { return x; }
};

/// Reduces f(x) over n contiguous elements.
template <class R, class E, class F = Identity>
typename R::template Accumulator<E> reduce_row(std::int64_t n, const E* x, const F& f = {}) {
  using P = Pack<E>;
  constexpr auto width = pack_size<E>;
  typename R::template Accumulator<E> total = R::template start<E>;
  std::int64_t i = 0;
  if constexpr (width > 1) {
    while (n - i >= 4 * width) {
      P lanes[4];
      std::fill_n(lanes, 4, P(R::template start<E>));
      const auto stop = std::min(n, i + run_length * width) - 4 * width;
      for (; i <= stop; i += 4 * width)
        for (int k = 0; k < 4; ++k) lanes[k] = R::combine(lanes[k], f(load<E>(x + i + k * width)));
      E folded[width];
      store<E>(folded, R::combine(R::combine(lanes[0], lanes[1]), R::combine(lanes[2], lanes[3])));
      for (const E value : folded) total = R::combine(total, static_cast<decltype(total)>(value));
    }
  }
  for (; i < n; ++i) total = R::combine(total, static_cast<decltype(total)>(f(x[i])));
  return total;
}

/// Reduces the rows of a matrix [rows, n]: out[i] over x[i, :].
template <class R, class E> void reduce_rows(std::int64_t rows, std::int64_t n, const E* x, E* out) {
  if (rows == 1) {  // one long row: a partial result a chunk, combined in order
    constexpr std::int64_t chunk = 1 << 16;
    const std::int64_t chunks = (n + chunk - 1) / chunk;
    std::vector<typename R::template Accumulator<E>> partial(static_cast<std::size_t>(chunks));
    parallel_for(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto c = begin; c < end; ++c)
        partial[static_cast<std::size_t>(c)] = reduce_row<R>(std::min(chunk, n - c * chunk), x + c * chunk);
    });
    typename R::template Accumulator<E> total = R::template start<E>;
    for (const auto value : partial) total = R::combine(total, value);
    *out = static_cast<E>(total);
    return;
  }
  parallel_for(rows, std::max<std::int64_t>(1, default_grain / std::max<std::int64_t>(n, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) out[i] = static_cast<E>(reduce_row<R>(n, x + i * n));
               });
}

/// Reduces the columns of a matrix [n, columns]: out[j] over x[:, j], for j from `begin` to `end`.
template <class R, class E>
void reduce_columns(std::int64_t n, std::int64_t columns, std::int64_t begin, std::int64_t end, const E* x,
                    E* out) {
  constexpr std::int64_t width = 64, run = 64;
  for (auto j = begin; j < end; j += width) {
    const auto span = std::min(width, end - j);
    typename R::template Accumulator<E> total[width];
    std::fill_n(total, span, R::template start<E>);
    for (std::int64_t i = 0; i < n; i += run) {
      E lanes[width];
      std::fill_n(lanes, width, R::template start<E>);
      const auto stop = std::min(n, i + run);
      if (span == width)
        for (auto k = i; k < stop; ++k)
          for (std::int64_t c = 0; c < width; ++c) lanes[c] = R::combine(lanes[c], x[k * columns + j + c]);
      else
        for (auto k = i; k < stop; ++k)
          for (std::int64_t c = 0; c < span; ++c) lanes[c] = R::combine(lanes[c], x[k * columns + j + c]);
      for (std::int64_t c = 0; c < span; ++c)
        total[c] = R::combine(total[c], static_cast<typename R::template Accumulator<E>>(lanes[c]));
    }
    for (std::int64_t c = 0; c < span; ++c) out[j + c] = static_cast<E>(total[c]);
  }
}

/// Reduces the axes flagged in `reduced` into `out`, which holds the kept ones in order.
template <class R, class E>
void reduce(const BasicCpuArray<E>& x, const std::array<bool, max_rank>& reduced, E* out) {
  // Neighbouring axes of one kind are merged: a list of extents that alternate between kept and reduced.
  std::int64_t extents[max_rank] = {};
  bool kinds[max_rank] = {};
  int count = 0;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const bool kind = reduced[static_cast<std::size_t>(i)];
    if (x.shape()[i] == 1) continue;
    if (count > 0 && kinds[count - 1] == kind) {
      extents[count - 1] *= x.shape()[i];
    } else {
      kinds[count] = kind;
      extents[count++] = x.shape()[i];
    }
  }
  const E* const from = x.data();
  if (count == 0 || (count == 1 && !kinds[0])) {  // nothing to reduce
    std::copy_n(from, x.shape().size(), out);
  } else if (count == 1) {
    reduce_rows<R>(1, extents[0], from, out);
  } else if (count == 2 && kinds[1]) {
    reduce_rows<R>(extents[0], extents[1], from, out);
  } else if (count == 2 || (count == 3 && kinds[1])) {
    const std::int64_t outer = count == 3 ? extents[0] : 1, n = extents[count - 2],
                       columns = extents[count - 1];
    // Threads take groups of 64 columns, so that none shares a cache line of the result.
    const std::int64_t groups = (columns + 63) / 64;
    parallel_for(outer * groups, std::max<std::int64_t>(1, default_grain / std::max<std::int64_t>(64 * n, 1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto job = begin; job < end; ++job) {
                     const auto o = job / groups, first = job % groups * 64;
                     reduce_columns<R>(n, columns, first, std::min(first + 64, columns),
                                       from + o * n * columns, out + o * columns);
                   }
                 });
  } else {  // bring the kept axes to the front
    Axes order;
    std::int64_t rows = 1, n = 1;
    for (const bool kind : {false, true})
      for (int i = 0; i < x.shape().rank(); ++i)
        if (reduced[static_cast<std::size_t>(i)] == kind) {
          order.push_back(i);
          (kind ? n : rows) *= x.shape()[i];
        }
    const auto sorted = eval(op::Permute{order}, x);
    reduce_rows<R>(rows, n, sorted.data(), out);
  }
}

/// Whether all axes but the channels' of images are summed over, as for the gradient of a bias.
inline bool is_channel_sum(const op::Sum& op, const Shape& from) {
  const auto reduced = reduced_axes(op.name, op.axes, from);
  return from.rank() == 4 && reduced[0] && !reduced[1] && reduced[2] && reduced[3];
}

}  // namespace cpu

template <class E> BasicCpuArray<E> eval(const op::Sum& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  if constexpr (std::is_floating_point_v<E>)
    if (cpu::is_channel_sum(op, x.shape())) {
      cpu::sum_all_but_channels(x, out.mutable_data());
      return out;
    }
  cpu::reduce<cpu::SumReducer>(x, reduced_axes(op.name, op.axes, x.shape()), out.mutable_data());
  return out;
}

template <class E, bool Largest>
BasicCpuArray<E> eval(const op::Extreme<Largest>& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  cpu::reduce<cpu::ExtremeReducer<Largest>>(x, reduced_axes(op.name, op.axes, x.shape()), out.mutable_data());
  return out;
}

template <class E> BasicCpuArray<E> eval(const op::SumTo& op, const BasicCpuArray<E>& x) {
  const Shape shape = op.shape(x.shape());
  if (shape == x.shape()) return x;
  std::array<bool, max_rank> reduced{};
  const int added = x.shape().rank() - shape.rank();
  for (int i = 0; i < x.shape().rank(); ++i)
    reduced[static_cast<std::size_t>(i)] = i < added || (shape[i - added] == 1 && x.shape()[i] != 1);
  auto out = BasicCpuArray<E>::uninitialized(shape);
  cpu::reduce<cpu::SumReducer>(x, reduced, out.mutable_data());
  return out;
}

template <class E> BasicCpuArray<std::int64_t> eval(const op::Argmax& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<std::int64_t>::uninitialized(op.shape(x.shape()));
  const int axis = normalize_axis(op.name, op.axis, x.shape());
  const std::int64_t n = x.shape()[axis];
  const std::int64_t inner = cpu::dense_strides(x.shape())[static_cast<std::size_t>(axis)];
  const E* const data = x.data();
  std::int64_t* const to = out.mutable_data();
  cpu::parallel_for(out.shape().size(), std::max<std::int64_t>(1, cpu::default_grain / n),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (auto i = begin; i < end; ++i) {
                        const E* from = data + i / inner * n * inner + i % inner;
                        std::int64_t best = 0;
                        for (std::int64_t k = 0; k < n; ++k) {
                          const E value = from[k * inner], champion = from[best * inner];
                          if (value > champion || (value != value && champion == champion)) best = k;
                        }
                        to[i] = best;
                      }
                    });
  return out;
}

}  // namespace taut
