#pragma once
// Loops over arrays [n, c, ...] whose channels have parameters or sums of their own, in any layout of images.

#include <array>
#include <vector>

#include "array.hpp"
#include "simd.hpp"

namespace taut::cpu {

/// The view of an array [n, c, ...] that has the longest runs: where a channel has one pixel, all layouts are
/// the one that has the channels together.
inline ImageView channel_view(const Shape& shape, Layout layout) {
  const ImageView view(shape, layout);
  return view.pixels == 1 ? ImageView(shape, Layout::channels_last) : view;
}

/// A run of packs, or of single elements, through one image that all belong to the same channels: `count` of
/// them from `offset` on, `stride` elements apart. Lane i of a pack belongs to channel + i, or all lanes to
/// `channel`.
template <class S> struct ChannelRun {
  std::int64_t offset, stride, count, channel;
  bool one_channel;

  /// The parameters of the run's channels.
  template <class E> S parameters(const E* of_channels) const {
    return one_channel ? S(of_channels[channel]) : load_as<S>(of_channels + channel);
  }

  /// Adds to the sums of the run's channels.
  template <class E> void add(const S& value, double* to) const {
    if constexpr (std::is_same_v<S, E>) {
      to[channel] += static_cast<double>(value);
    } else {
      E lanes[sizeof(S) / sizeof(E)];
      store_as<S>(lanes, value);
      for (std::size_t i = 0; i < std::size(lanes); ++i)
        to[channel + (one_channel ? 0 : static_cast<std::int64_t>(i))] += static_cast<double>(lanes[i]);
    }
  }
};

/// Calls body for a run, in pieces: what sums in E over a piece is added up in double.
template <class S, class F> void in_pieces(ChannelRun<S> run, const F& body) {
  constexpr std::int64_t most = 256;
  for (const auto end = run.offset + run.count * run.stride; run.offset < end;
       run.offset += most * run.stride) {
    run.count = std::min(most, (end - run.offset) / run.stride);
    body(run);
  }
}

/// Calls body(run) for the runs of block `b` of image `n`.
template <class E, class F>
void for_each_run(const ImageView& view, std::int64_t n, std::int64_t b, const F& body) {
  constexpr std::int64_t width = pack_size<E>;
  const auto base = (n * view.blocks + b) * view.pixels * view.block, channel = b * view.block;
  if (view.block == 1) {
    const auto packs = view.pixels / width;
    in_pieces(ChannelRun<Pack<E>>{base, width, packs, channel, true}, body);
    if constexpr (width > 1)
      in_pieces(ChannelRun<E>{base + packs * width, 1, view.pixels - packs * width, channel, true}, body);
    return;
  }
  std::int64_t lane = 0;
  for (; lane + width <= view.block; lane += width)
    in_pieces(ChannelRun<Pack<E>>{base + lane, view.block, view.pixels, channel + lane, false}, body);
  if constexpr (width > 1)
    for (; lane < view.block; ++lane)
      in_pieces(ChannelRun<E>{base + lane, view.block, view.pixels, channel + lane, false}, body);
}

/// Calls body(n, block) for all blocks of all images, on several threads where that pays.
template <class F> void for_each_block_of_images(const ImageView& view, const F& body) {
  const auto work = std::max<std::int64_t>(1, view.pixels * view.block);
  parallel_for(view.n * view.blocks, std::max<std::int64_t>(1, default_grain / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) body(i / view.blocks, i % view.blocks);
               });
}

/// Sums a channel over all images: term(run, i, sums) adds the terms of element i of a run to `K` sums. They
/// are gathered image by image in E and added up in double, whatever the number of threads. Returns [K][c].
template <int K, class E, class F> std::vector<double> sum_channels(const ImageView& view, const F& term) {
  const auto c = view.channels();
  std::vector<double> partial(static_cast<std::size_t>(view.n * K * c));
  for_each_block_of_images(view, [&](std::int64_t n, std::int64_t b) {
    double* const own = partial.data() + n * K * c;
    for_each_run<E>(view, n, b, [&]<class S>(const ChannelRun<S>& run) {
      std::array<S, K> sums;
      sums.fill(S(E(0)));
      term(run, sums);
      for (std::size_t k = 0; k < K; ++k)
        run.template add<E>(sums[k], own + static_cast<std::int64_t>(k) * c);
    });
  });
  std::vector<double> total(static_cast<std::size_t>(K * c));
  for (std::int64_t n = 0; n < view.n; ++n)
    for (std::size_t i = 0; i < total.size(); ++i)
      total[i] += partial[static_cast<std::size_t>(n) * total.size() + i];
  return total;
}

/// Σ x over all axes but the channels': [c].
template <class E> void sum_all_but_channels(const BasicCpuArray<E>& x, E* to) {
  const E* const from = x.data(x.layout());
  const auto sums = sum_channels<1, E>(ImageView(x.shape(), x.layout()),
                                       [from]<class S>(const ChannelRun<S>& run, std::array<S, 1>& total) {
                                         for (std::int64_t i = 0; i < run.count; ++i)
                                           total[0] += load_as<S>(from + run.offset + i * run.stride);
                                       });
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<E>(sums[i]);
}

}  // namespace taut::cpu
