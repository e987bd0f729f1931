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

/// Up to 16 neighbouring channels of one place of the result.
struct ResampledPlace {
  static constexpr std::int64_t most = 16;
  std::int64_t x, y, lanes;  ///< offsets of the channels' first pixel and of the place; how many channels
  const op::Taps &row, &column;
  std::int64_t width, block;

  /// Calls visit(offset in x, weight) for the pixels that go into the place.
  template <class F> void for_each_tap(const F& visit) const {
    for (std::int64_t k = 0; k < row.count; ++k)
      for (std::int64_t l = 0; l < column.count; ++l)
        visit(x + ((row.first + k) * width + column.first + l) * block,
              (k + 1 < row.count ? row.weight : row.last) *
                  (l + 1 < column.count ? column.weight : column.last));
  }
};

/// Calls body(place) for all places of the result of a resampling of images of shape x. Threads share the
/// channels, so places of one channel come one after the other.
template <class F> void for_each_place(const TapTables& taps, const Shape& x, Layout layout, const F& body) {
  const ImageView view(x, layout);
  constexpr auto most = ResampledPlace::most;
  const auto block = view.block, chunks = (block + most - 1) / most;
  const auto places = static_cast<std::int64_t>(taps.rows.size() * taps.columns.size());
  const auto work = std::max<std::int64_t>(1, most * std::max(view.pixels, places));
  parallel_for(view.n * view.blocks * chunks, std::max<std::int64_t>(1, default_grain / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto group = begin; group < end; ++group) {
                   const auto plane = group / chunks, lane = group % chunks * most;
                   auto y = plane * places * block + lane;
                   for (const auto& row : taps.rows)
                     for (const auto& column : taps.columns) {
                       body(ResampledPlace{plane * view.pixels * block + lane, y,
                                           std::min(most, block - lane), row, column, x[3], block});
                       y += block;
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
  cpu::for_each_place(cpu::TapTables(op, x.shape(), shape), x.shape(), x.layout(),
                      [=](const cpu::ResampledPlace& place) {
                        double total[cpu::ResampledPlace::most] = {};
                        place.for_each_tap([&](std::int64_t at, double weight) {
                          for (std::int64_t i = 0; i < place.lanes; ++i)
                            total[i] += weight * static_cast<double>(from[at + i]);
                        });
                        for (std::int64_t i = 0; i < place.lanes; ++i)
                          to[place.y + i] = static_cast<E>(total[i]);
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
  cpu::for_each_place(cpu::TapTables(op.op, shape, g.shape()), shape, g.layout(),
                      [=](const cpu::ResampledPlace& place) {
                        place.for_each_tap([&](std::int64_t at, double weight) {
                          const E w = static_cast<E>(weight);
                          for (std::int64_t i = 0; i < place.lanes; ++i) to[at + i] += w * from[place.y + i];
                        });
                      });
  return out;
}

}  // namespace taut
