#pragma once
// Layer normalisation on dense arrays, row by row while the row is in cache. Nothing is stored that can be
// computed again from what is read anyway: the gradients take each row's statistics from x.

#include <cmath>

#include "../op/layer_norm.hpp"
#include "elementwise.hpp"
#include "reduce.hpp"

namespace taut {

namespace cpu {

/// f(x - centre)
template <class E, class F> struct AboutCentre {
  E centre;
  F f;
  template <class S> S operator()(S x) const { return f(x - S(centre)); }
};

/// The mean of a row, rounded, and 1 / √(variance + eps).
template <class E> struct RowStatistics {
  E mean, inverse;

  RowStatistics(const E* x, std::int64_t n, double eps) {
    // First about the row's first element, so that the mean of equal ones is exact; then about the mean.
    const double count = static_cast<double>(n);
    const double offset = reduce_row<SumReducer>(n, x, AboutCentre<E, Identity>{x[0], {}}) / count;
    mean = static_cast<E>(static_cast<double>(x[0]) + offset);
    const double variance = reduce_row<SumReducer>(n, x, AboutCentre<E, op::Square>{mean, {}}) / count;
    inverse = static_cast<E>(1 / std::sqrt(variance + eps));
  }
};

/// x̂ weight + bias
template <class E> struct NormalizedRow {
  RowStatistics<E> of;
  template <class S> S operator()(S x, S weight, S bias) const {
    return (x - S(of.mean)) * S(of.inverse) * weight + bias;
  }
};

/// g x̂
template <class E> struct TimesNormal {
  RowStatistics<E> of;
  template <class S> S operator()(S g, S x) const { return g * ((x - S(of.mean)) * S(of.inverse)); }
};

/// (h - mean(h) - x̂ mean(h x̂)) / √(variance + eps), with h = g weight
template <class E> struct GradientOfRow {
  RowStatistics<E> of;
  E mean, mean_with_normal;
  template <class S> S operator()(S g, S weight, S x) const {
    const S normal = (x - S(of.mean)) * S(of.inverse);
    return (g * weight - S(mean) - normal * S(mean_with_normal)) * S(of.inverse);
  }
};

/// to[i] = op(from₀[i], from₁[i], …) over a row of n elements.
template <class E, class Op, class... From>
void map_row(const Op& op, std::int64_t n, E* to, const From*... from) {
  const E* const operands[] = {from...};
  map_contiguous(op, n, to, operands, std::make_index_sequence<sizeof...(From)>{});
}

/// Calls work(offset, x + offset's statistics) for each row of n elements.
template <class E, class Work>
void for_each_normal_row(const BasicCpuArray<E>& x, std::int64_t n, double eps, const Work& work) {
  if (x.shape().size() == 0) return;
  const E* const from = x.data();
  for_each_row(x.shape().size() / n, n,
               [&](std::int64_t row) { work(row * n, RowStatistics<E>(from + row * n, n, eps)); });
}

}  // namespace cpu

template <class E>
BasicCpuArray<E> eval(const op::LayerNorm& op, const BasicCpuArray<E>& x, const BasicCpuArray<E>& weight,
                      const BasicCpuArray<E>& bias) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape(), weight.shape(), bias.shape()));
  const std::int64_t n = weight.shape().size();
  const E *const from = x.data(), *const w = weight.data(), *const b = bias.data();
  E* const to = out.mutable_data();
  cpu::for_each_normal_row(x, n, op.eps, [=](std::int64_t at, const cpu::RowStatistics<E>& row) {
    cpu::map_row<E>(cpu::NormalizedRow<E>{row}, n, to + at, from + at, w, b);
  });
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::LayerNormGradient& op, const BasicCpuArray<E>& g, const BasicCpuArray<E>& x,
                      const BasicCpuArray<E>& weight) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(g.shape(), x.shape(), weight.shape()));
  const std::int64_t n = weight.shape().size();
  const E *const gradient = g.data(), *const from = x.data(), *const w = weight.data();
  E* const to = out.mutable_data();
  cpu::for_each_normal_row(x, n, op.eps, [=](std::int64_t at, const cpu::RowStatistics<E>& row) {
    E* const out_row = to + at;  // holds what is summed up until its own turn comes
    const auto mean = [=] {
      return static_cast<E>(cpu::reduce_row<cpu::SumReducer>(n, out_row) / static_cast<double>(n));
    };
    cpu::GradientOfRow<E> rule{row, {}, {}};
    cpu::map_row<E>(op::Mul{}, n, out_row, gradient + at, w);
    rule.mean = mean();
    cpu::map_row<E>(cpu::TimesNormal<E>{row}, n, out_row, out_row, from + at);
    rule.mean_with_normal = mean();
    cpu::map_row<E>(rule, n, out_row, gradient + at, w, from + at);
  });
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::LayerNormSums& op, const BasicCpuArray<E>& g, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(g.shape(), x.shape()));
  const std::int64_t n = out.shape()[1];
  if (n == 0) return out;
  auto with_normal = BasicCpuArray<E>::uninitialized({x.shape().size() / n, n});
  const E *const gradient = g.data(), *const from = x.data();
  E* const product = with_normal.mutable_data();
  cpu::for_each_normal_row(x, n, op.eps, [=](std::int64_t at, const cpu::RowStatistics<E>& row) {
    cpu::map_row<E>(cpu::TimesNormal<E>{row}, n, product + at, gradient + at, from + at);
  });
  cpu::reduce<cpu::SumReducer>(g.with_shape(with_normal.shape()), {true, false}, out.mutable_data());
  cpu::reduce<cpu::SumReducer>(with_normal, {true, false}, out.mutable_data() + n);
  return out;
}

}  // namespace taut
