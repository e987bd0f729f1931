#pragma once
// Cross-entropy and selection by label on dense arrays.

#include <cmath>
#include <vector>

#include "../op/cross_entropy.hpp"
#include "index_check.hpp"
#include "softmax.hpp"

namespace taut {

namespace cpu {

inline void check_labels(std::string_view op, std::span<const std::int64_t> labels, std::int64_t classes) {
  check_indices(op, "label", "classes", labels, classes);
}

/// ln Σ exp(x) - x[label], with `scratch` of n elements for the exponentials. The largest logit is subtracted
/// from the label's before anything is rounded, so that losses of large logits keep their digits.
template <class E> double loss_of_row(const E* x, std::int64_t n, std::int64_t label, E* scratch) {
  const E largest = reduce_row<ExtremeReducer<true>>(n, x);
  const double log_sum = std::log(exp_shifted(x, n, largest, scratch));
  return log_sum + (static_cast<double>(largest) - static_cast<double>(x[label]));
}

}  // namespace cpu

template <class E>
BasicCpuArray<E> eval(const op::Pick& op, const BasicCpuArray<E>& x,
                      const BasicCpuArray<std::int64_t>& labels) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape(), labels.shape()));
  const auto classes = x.shape()[1];
  cpu::check_labels(op.name, labels.span(), classes);
  for (std::int64_t i = 0; i < x.shape()[0]; ++i)
    out.mutable_data()[i] = x.data()[i * classes + labels.data()[i]];
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::Unpick& op, const BasicCpuArray<E>& x,
                      const BasicCpuArray<std::int64_t>& labels) {
  auto out = BasicCpuArray<E>::zeros(op.shape(x.shape(), labels.shape()));
  cpu::check_labels(op.name, labels.span(), op.classes);
  for (std::int64_t i = 0; i < x.shape()[0]; ++i)
    out.mutable_data()[i * op.classes + labels.data()[i]] = x.data()[i];
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::CrossEntropy& op, const BasicCpuArray<E>& x,
                      const BasicCpuArray<std::int64_t>& labels) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape(), labels.shape()));
  const auto rows = x.shape()[0], classes = x.shape()[1];
  cpu::check_labels(op.name, labels.span(), classes);
  std::vector<double> losses(static_cast<std::size_t>(rows));
  cpu::parallel_for(
      rows, std::max<std::int64_t>(1, cpu::default_grain / (8 * std::max<std::int64_t>(classes, 1))),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<E> scratch(static_cast<std::size_t>(classes));
        for (auto i = begin; i < end; ++i) {
          losses[static_cast<std::size_t>(i)] =
              cpu::loss_of_row(x.data() + i * classes, classes, labels.data()[i], scratch.data());
        }
      });
  double total = 0;
  for (const double loss : losses) total += loss;
  *out.mutable_data() = static_cast<E>(total / static_cast<double>(rows));
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::CrossEntropyGradient& op, const BasicCpuArray<E>& g,
                      const BasicCpuArray<E>& x, const BasicCpuArray<std::int64_t>& labels) {
  op.shape(g.shape(), x.shape(), labels.shape());
  cpu::check_labels(op.name, labels.span(), x.shape()[1]);
  const E scale = g.item() / static_cast<E>(x.shape()[0]);
  auto out = eval(op::Softmax{1}, x);
  E* to = out.mutable_data();
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) to[i * x.shape()[1] + labels.data()[i]] -= E(1);
  for (std::int64_t i = 0; i < x.shape().size(); ++i) to[i] *= scale;
  return out;
}

}  // namespace taut
