#pragma once
// Batch normalisation in one pass each: statistics, result, sums of the gradient, gradient. All of it waits
// for memory, so nothing is stored that can be computed again from what is read anyway: a ReLU's mask comes
// from x.

#include <cmath>

#include "../op/batch_norm.hpp"
#include "channels.hpp"

namespace taut {

namespace cpu {

/// What normalises each channel: (x - mean) factor + bias, with factor = weight / deviation.
template <class E> struct ChannelAffine {
  std::vector<E> mean, factor, bias, inverse_deviation;

  ChannelAffine(const BasicCpuArray<E>& weight, const BasicCpuArray<E>& own_bias,
                const BasicCpuArray<E>& statistics, double eps) {
    const auto c = static_cast<std::size_t>(weight.shape()[0]);
    mean.assign(statistics.data(), statistics.data() + c);
    bias.assign(own_bias.data(), own_bias.data() + c);
    for (std::size_t i = 0; i < c; ++i) {
      const double inverse = 1 / std::sqrt(static_cast<double>(statistics.data()[c + i]) + eps);
      inverse_deviation.push_back(static_cast<E>(inverse));
      factor.push_back(static_cast<E>(static_cast<double>(weight.data()[i]) * inverse));
    }
  }
};

/// The parameters of a run's channels, in registers.
template <class S> struct RunAffine {
  S mean, factor, bias;

  template <class E>
  RunAffine(const ChannelRun<S>& run, const ChannelAffine<E>& of)
      : mean(run.parameters(of.mean.data())),
        factor(run.parameters(of.factor.data())),
        bias(run.parameters(of.bias.data())) {}

  S centred(const S& x) const { return x - mean; }
  S result(const S& x) const { return centred(x) * factor + bias; }

  /// g, or 0 where a ReLU cut the result off.
  S kept(const S& g, const S& x, bool relu) const { return relu ? select(result(x) <= S(0), S(0), g) : g; }
};

/// (x - mean) factor + bias, then + residual if there is one, then ReLU if it is wanted.
template <class E>
BasicCpuArray<E> normalize(const BasicCpuArray<E>& x, const ChannelAffine<E>& affine,
                           const BasicCpuArray<E>* residual, bool relu) {
  const Layout layout = residual ? common_layout(x.layout(), residual->layout()) : x.layout();
  auto out = BasicCpuArray<E>::uninitialized(x.shape(), layout);
  const E *from = x.data(layout), *other = residual ? residual->data(layout) : nullptr;
  E* const to = out.mutable_data();
  const ImageView view = channel_view(x.shape(), layout);
  for_each_block_of_images(view, [&](std::int64_t n, std::int64_t b) {
    for_each_run<E>(view, n, b, [&]<class S>(const ChannelRun<S>& run) {
      const RunAffine<S> own(run, affine);
      for (std::int64_t i = 0; i < run.count; ++i) {
        const auto at = run.offset + i * run.stride;
        S y = own.result(load_as<S>(from + at));
        if (other) y += load_as<S>(other + at);
        store_as<S>(to + at, relu ? select(y <= S(0), S(0), y) : y);
      }
    });
  });
  return out;
}

}  // namespace cpu

template <class E> BasicCpuArray<E> eval(const op::BatchStatistics& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  const cpu::ImageView view = cpu::channel_view(x.shape(), x.layout());
  const E* const from = x.data(x.layout());
  const auto c = view.channels();
  // Mean and squared deviations of each channel of each group of images, which then are merged (Chan, Golub
  // and LeVeque, "Algorithms for Computing the Sample Variance", 1983): x is read from memory once, and
  // nothing cancels.
  const cpu::ImageGroups groups(view);
  const auto size = static_cast<std::size_t>(groups.count * c);
  std::vector<double> means(size), squares(size);
  std::vector<E> centres(size);
  const auto elements = [&](std::int64_t group) {
    return static_cast<double>((groups.end(group) - groups.begin(group)) * view.pixels);
  };
  cpu::for_each_block_of_groups(view, groups, [&](std::int64_t group, std::int64_t b) {
    const auto at = group * c;
    const auto sum_about_centre = [&](auto term, std::vector<double>& to) {
      cpu::sum_group<1, E>(view, groups, group, b, to.data() + at,
                           [&]<class S>(const cpu::ChannelRun<S>& run, std::array<S, 1>& sum) {
                             const S centre = run.parameters(static_cast<const E*>(centres.data()) + at);
                             for (std::int64_t i = 0; i < run.count; ++i)
                               sum[0] += term(cpu::load_as<S>(from + run.offset + i * run.stride) - centre);
                           });
    };
    // First about the channel's first element, so that the mean of equal ones is exact; then about the mean.
    E* const own = centres.data() + at + b * view.block;
    std::copy_n(from + (groups.begin(group) * view.blocks + b) * view.pixels * view.block, view.block, own);
    sum_about_centre([](const auto& d) { return d; }, means);
    for (std::int64_t i = 0; i < view.block; ++i) {
      double& mean = means[static_cast<std::size_t>(at + b * view.block + i)];
      mean = static_cast<double>(own[i]) + mean / elements(group);
      own[i] = static_cast<E>(mean);
    }
    sum_about_centre([](const auto& d) { return d * d; }, squares);
  });
  const double all = static_cast<double>(view.n * view.pixels);
  for (std::int64_t i = 0; i < c; ++i) {
    double mean = 0, square = 0;
    for (std::int64_t group = 0; group < groups.count; ++group)
      mean += elements(group) * means[static_cast<std::size_t>(group * c + i)];
    mean /= all;
    for (std::int64_t group = 0; group < groups.count; ++group) {
      // The squares are about the centre, the rounded mean of the group.
      const auto at = static_cast<std::size_t>(group * c + i);
      const double to_all = means[at] - mean, to_centre = means[at] - static_cast<double>(centres[at]);
      square += squares[at] + elements(group) * (to_all * to_all - to_centre * to_centre);
    }
    const double variance = square / all;
    out.mutable_data()[i] = static_cast<E>(mean);
    out.mutable_data()[c + i] = static_cast<E>(variance < 0 ? 0 : variance);  // NaN stays
  }
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::BatchNorm& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& weight,
                      const BasicCpuArray<E>& bias, const BasicCpuArray<E>& statistics) {
  op.shape(x.shape(), weight.shape(), bias.shape(), statistics.shape());
  const cpu::ChannelAffine<E> affine(weight, bias, statistics, op.options.eps);
  return cpu::normalize<E>(x, affine, nullptr, op.options.relu);
}

template <class E>
BasicCpuArray<E> eval(const op::BatchNormAddRelu& op, const BasicCpuArray<E>& x,
                      const BasicCpuArray<E>& weight, const BasicCpuArray<E>& bias,
                      const BasicCpuArray<E>& statistics, const BasicCpuArray<E>& residual) {
  op.shape(x.shape(), weight.shape(), bias.shape(), statistics.shape(), residual.shape());
  const cpu::ChannelAffine<E> affine(weight, bias, statistics, op.options.eps);
  return cpu::normalize<E>(x, affine, &residual, true);
}

template <class E>
BasicCpuArray<E> eval(const op::BatchNormSums& op, const BasicCpuArray<E>& g, const BasicCpuArray<E>& x,
                      const BasicCpuArray<E>& weight, const BasicCpuArray<E>& bias,
                      const BasicCpuArray<E>& statistics) {
  auto out = BasicCpuArray<E>::uninitialized(
      op.shape(g.shape(), x.shape(), weight.shape(), bias.shape(), statistics.shape()));
  const cpu::ChannelAffine<E> affine(weight, bias, statistics, op.options.eps);
  const auto layout = cpu::common_layout(x.layout(), g.layout());
  const E *const dy = g.data(layout), *const from = x.data(layout);
  const bool relu = op.options.relu;
  const auto sums = cpu::sum_channels<2, E>(
      cpu::channel_view(x.shape(), layout),
      [&]<class S>(const cpu::ChannelRun<S>& run, std::array<S, 2>& total) {
        const cpu::RunAffine<S> own(run, affine);
        for (std::int64_t i = 0; i < run.count; ++i) {
          const auto at = run.offset + i * run.stride;
          const S value = cpu::load_as<S>(from + at), kept = own.kept(cpu::load_as<S>(dy + at), value, relu);
          total[0] += kept;
          total[1] += kept * own.centred(value);
        }
      });
  const auto c = affine.mean.size();
  for (std::size_t i = 0; i < c; ++i) {
    out.mutable_data()[i] = static_cast<E>(sums[i]);
    out.mutable_data()[c + i] =
        static_cast<E>(sums[c + i] * static_cast<double>(affine.inverse_deviation[i]));
  }
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::BatchNormGradient& op, const BasicCpuArray<E>& g, const BasicCpuArray<E>& x,
                      const BasicCpuArray<E>& weight, const BasicCpuArray<E>& bias,
                      const BasicCpuArray<E>& statistics, const BasicCpuArray<E>& sums) {
  op.shape(g.shape(), x.shape(), weight.shape(), bias.shape(), statistics.shape(), sums.shape());
  const cpu::ChannelAffine<E> affine(weight, bias, statistics, op.options.eps);
  const auto layout = cpu::common_layout(x.layout(), g.layout());
  auto out = BasicCpuArray<E>::uninitialized(x.shape(), layout);
  // factor (g - Σg/m - x̂ Σ(g x̂)/m) as factor g - constant - (x - mean) slope
  const auto c = affine.mean.size();
  std::vector<E> constant(c, E(0)), slope(c, E(0));
  const E scale = E(1) / static_cast<E>(taut::detail::channel_size(x.shape()));
  for (std::size_t i = 0; op.options.batch && i < c; ++i) {
    constant[i] = affine.factor[i] * sums.data()[i] * scale;
    slope[i] = affine.factor[i] * sums.data()[c + i] * scale * affine.inverse_deviation[i];
  }
  const E *const dy = g.data(layout), *const from = x.data(layout);
  E* const to = out.mutable_data();
  const bool relu = op.options.relu;
  const cpu::ImageView view = cpu::channel_view(x.shape(), layout);
  cpu::for_each_block_of_images(view, [&](std::int64_t n, std::int64_t b) {
    cpu::for_each_run<E>(view, n, b, [&]<class S>(const cpu::ChannelRun<S>& run) {
      const cpu::RunAffine<S> own(run, affine);
      const S offset = run.parameters(constant.data()), tilt = run.parameters(slope.data());
      for (std::int64_t i = 0; i < run.count; ++i) {
        const auto at = run.offset + i * run.stride;
        const S value = cpu::load_as<S>(from + at), kept = own.kept(cpu::load_as<S>(dy + at), value, relu);
        cpu::store_as<S>(to + at, own.factor * kept - offset - own.centred(value) * tilt);
      }
    });
  });
  return out;
}

}  // namespace taut
