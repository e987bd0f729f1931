#pragma once
// Average pooling and upsampling: one kernel for all, and one for their adjoints.

#include <vector>

#include "../op/resample2d.hpp"
#include "array.hpp"

namespace taut {

namespace cpu {

/// The taps of all places of a resampling's result, along both axes.
struct TapTables {
  std::vector<op::Taps> rows, columns;

  template <op::ResamplingOp Op> TapTables(const Op& op, const Shape& from, const Shape& to) {
    for (std::int64_t i = 0; i < to[2]; ++i) rows.push_back(op.taps(0, from[2], to[2], i));
    for (std::int64_t j = 0; j < to[3]; ++j) columns.push_back(op.taps(1, from[3], to[3], j));
  }
};

/// Calls visit(x, y, weight, lanes) for each element of x that goes into an element of y, for up to `lanes`
/// neighbouring channels at their offsets. Threads share the channels; elements of y come one after the
/// other.
template <class F> void for_each_tap(const TapTables& taps, const Shape& x, Layout layout, const F& visit) {
  const ImageView view(x, layout);
  constexpr std::int64_t most = 16;
  const auto w = x[3], block = view.block, chunks = (block + most - 1) / most;
  const auto oh = static_cast<std::int64_t>(taps.rows.size()),
             ow = static_cast<std::int64_t>(taps.columns.size());
  const auto work = most * std::max(view.pixels, oh * ow);
  parallel_for(view.n * view.blocks * chunks,
               std::max<std::int64_t>(1, default_grain / std::max<std::int64_t>(1, work)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto group = begin; group < end; ++group) {
                   const auto plane = group / chunks, lane = group % chunks * most;
                   const auto lanes = std::min(most, block - lane);
                   const auto at_x = plane * view.pixels * block + lane,
                              at_y = plane * oh * ow * block + lane;
                   for (std::int64_t i = 0; i < oh; ++i)
                     for (std::int64_t j = 0; j < ow; ++j) {
                       const auto &row = taps.rows[static_cast<std::size_t>(i)],
                                  &column = taps.columns[static_cast<std::size_t>(j)];
                       for (std::int64_t k = 0; k < row.count; ++k)
                         for (std::int64_t l = 0; l < column.count; ++l) {
                           const double weight = (k + 1 < row.count ? row.weight : row.last) *
                                                 (l + 1 < column.count ? column.weight : column.last);
                           visit(at_x + ((row.first + k) * w + column.first + l) * block,
                                 at_y + (i * ow + j) * block, weight, lanes);
                         }
                     }
                 }
               });
}

}  // namespace cpu

template <op::ResamplingOp Op, class E> BasicCpuArray<E> eval(const Op& op, const BasicCpuArray<E>& x) {
  const Shape shape = op.shape(x.shape());
  auto out = BasicCpuArray<E>::uninitialized(shape, x.layout());
  const E* const from = x.data(x.layout());
  E* const to = out.mutable_data();
  std::fill_n(to, shape.size(), E(0));
  cpu::for_each_tap(cpu::TapTables(op, x.shape(), shape), x.shape(), x.layout(),
                    [=](std::int64_t at_x, std::int64_t at_y, double weight, std::int64_t lanes) {
                      const E w = static_cast<E>(weight);
                      for (std::int64_t i = 0; i < lanes; ++i) to[at_y + i] += w * from[at_x + i];
                    });
  return out;
}

template <op::ResamplingOp Op, class E>
BasicCpuArray<E> eval(const op::ResampleGradient<Op>& op, const BasicCpuArray<E>& g) {
  const Shape shape = op.shape(g.shape());
  auto out = BasicCpuArray<E>::uninitialized(shape, g.layout());
  const E* const from = g.data(g.layout());
  E* const to = out.mutable_data();
  std::fill_n(to, shape.size(), E(0));
  cpu::for_each_tap(cpu::TapTables(op.op, shape, g.shape()), shape, g.layout(),
                    [=](std::int64_t at_x, std::int64_t at_y, double weight, std::int64_t lanes) {
                      const E w = static_cast<E>(weight);
                      for (std::int64_t i = 0; i < lanes; ++i) to[at_x + i] += w * from[at_y + i];
                    });
  return out;
}

}  // namespace taut
