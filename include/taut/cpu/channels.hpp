#pragma once
// Loops over arrays [n, c, ...] whose channels have parameters or sums of their own, in any layout of images.

#include <algorithm>
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

/// How many elements are summed in E before they are added up in double.
inline constexpr std::int64_t piece_size = 256;

/// Calls body for a run, in pieces.
template <class S, class F> void in_pieces(ChannelRun<S> run, const F& body) {
  for (const auto end = run.offset + run.count * run.stride; run.offset < end;
       run.offset += piece_size * run.stride) {
    run.count = std::min(piece_size, (end - run.offset) / run.stride);
    body(run);
  }
}

/// Calls body(run) for the runs of block `b` of an image, with offsets from the image's first element.
template <class E, class F> void for_each_lane(const ImageView& view, std::int64_t b, const F& body) {
  constexpr std::int64_t width = pack_size<E>;
  const auto base = b * view.pixels * view.block, channel = b * view.block;
  if (view.block == 1) {
    const auto packs = view.pixels / width;
    body(ChannelRun<Pack<E>>{base, width, packs, channel, true});
    if constexpr (width > 1)
      body(ChannelRun<E>{base + packs * width, 1, view.pixels - packs * width, channel, true});
    return;
  }
  std::int64_t lane = 0;
  for (; lane + width <= view.block; lane += width)
    body(ChannelRun<Pack<E>>{base + lane, view.block, view.pixels, channel + lane, false});
  if constexpr (width > 1)
    for (; lane < view.block; ++lane)
      body(ChannelRun<E>{base + lane, view.block, view.pixels, channel + lane, false});
}

/// Calls body(run) for the runs of block `b` of image `n`.
template <class E, class F>
void for_each_run(const ImageView& view, std::int64_t n, std::int64_t b, const F& body) {
  for_each_lane<E>(view, b, [&]<class S>(ChannelRun<S> run) {
    run.offset += n * view.channels() * view.pixels;
    in_pieces(run, body);
  });
}

/// Calls body(part, block) for all blocks of all parts, of `images` images each, on several threads where
/// that pays.
template <class F>
void for_each_block(const ImageView& view, std::int64_t parts, std::int64_t images, const F& body) {
  const auto work = std::max<std::int64_t>(1, images * view.pixels * view.block);
  parallel_for(parts * view.blocks, std::max<std::int64_t>(1, default_grain / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = begin; i < end; ++i) body(i / view.blocks, i % view.blocks);
               });
}

/// Calls body(n, block) for all blocks of all images.
template <class F> void for_each_block_of_images(const ImageView& view, const F& body) {
  for_each_block(view, view.n, 1, body);
}

/// Images in groups: one each, or, if they are small, as many as fill a piece of sums in E.
struct ImageGroups {
  std::int64_t images, each, count;

  explicit ImageGroups(const ImageView& view)
      : images(view.n),
        each(std::max<std::int64_t>(1, piece_size / std::max<std::int64_t>(1, view.pixels))),
        count((view.n + each - 1) / each) {}

  std::int64_t begin(std::int64_t group) const { return group * each; }
  std::int64_t end(std::int64_t group) const { return std::min(images, begin(group) + each); }
};

/// Calls body(group, block) for all blocks of all groups.
template <class F>
void for_each_block_of_groups(const ImageView& view, const ImageGroups& groups, const F& body) {
  for_each_block(view, groups.count, groups.each, body);
}

/// Sums the channels of block `b` over a group of images: term(run, sums) adds the terms of a run to `K` sums
/// in E, a piece of which is added to `to`, [K][channels], in double.
template <int K, class E, class F>
void sum_group(const ImageView& view, const ImageGroups& groups, std::int64_t group, std::int64_t b,
               double* to, const F& term) {
  const auto c = view.channels();
  for_each_lane<E>(view, b, [&]<class S>(const ChannelRun<S>& lane) {
    std::array<S, K> sums;
    sums.fill(S(E(0)));
    const auto flush = [&] {
      for (std::size_t k = 0; k < K; ++k)
        lane.template add<E>(sums[k], to + static_cast<std::int64_t>(k) * c);
      sums.fill(S(E(0)));
    };
    for (auto n = groups.begin(group); n < groups.end(group); ++n) {
      auto run = lane;
      run.offset += n * c * view.pixels;
      in_pieces(run, [&](const ChannelRun<S>& in_piece) {
        term(in_piece, sums);
        if (groups.each == 1) flush();
      });
    }
    if (groups.each > 1) flush();
  });
}

/// Sums a channel over all images, whatever the number of threads in the same order: see `sum_group`. Returns
/// [K][channels].
template <int K, class E, class F> std::vector<double> sum_channels(const ImageView& view, const F& term) {
  const ImageGroups groups(view);
  const auto size = static_cast<std::size_t>(K * view.channels());
  std::vector<double> partial(static_cast<std::size_t>(groups.count) * size);
  for_each_block_of_groups(view, groups, [&](std::int64_t group, std::int64_t b) {
    sum_group<K, E>(view, groups, group, b, partial.data() + static_cast<std::size_t>(group) * size, term);
  });
  std::vector<double> total(size);
  for (std::size_t at = 0; at < partial.size(); at += size)
    for (std::size_t i = 0; i < size; ++i) total[i] += partial[at + i];
  return total;
}

/// Σ x over all axes but the channels': [c].
template <class E> void sum_all_but_channels(const BasicCpuArray<E>& x, E* to) {
  const E* const from = x.data(x.layout());
  const auto sums = sum_channels<1, E>(channel_view(x.shape(), x.layout()),
                                       [from]<class S>(const ChannelRun<S>& run, std::array<S, 1>& total) {
                                         for (std::int64_t i = 0; i < run.count; ++i)
                                           total[0] += load_as<S>(from + run.offset + i * run.stride);
                                       });
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<E>(sums[i]);
}

}  // namespace taut::cpu
