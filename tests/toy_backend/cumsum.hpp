#pragma once
// An operator of somebody else's, with a kernel for Taut's own arrays. docs/adding-an-operator.md walks
// through it.

#include <taut/cpu/array.hpp>

namespace mine {

/// Running sums along the last axis: yᵢ = Σ xⱼ over j ≤ i or, in reverse, over j ≥ i.
struct Cumsum {
  static constexpr std::string_view name = "cumsum";
  bool reverse = false;

  constexpr taut::Shape shape(const taut::Shape& x) const {
    taut::require(x.rank() >= 1, "cumsum: the operand needs an axis to sum along", x);
    return x;
  }
  constexpr std::int64_t flops(const taut::Shape& x) const { return x.size(); }

  // xⱼ is in every yᵢ with i ≥ j, so dxⱼ = Σ gᵢ over i ≥ j: running sums the other way.
  template <taut::AnyTensor T> auto pullback(taut::Needs<1>, const T&, const T&) const {
    return [back = Cumsum{!reverse}](const T& g) { return eval(back, g); };
  }
};

/// Running sums along the last axis, from its start or, in `reverse`, from its end.
template <taut::AnyTensor X> constexpr auto cumsum(const X& x, bool reverse = false) {
  return eval(Cumsum{reverse}, x);
}

/// The kernel: a row at a time, accumulated in double.
template <class E> taut::BasicCpuArray<E> eval(const Cumsum& op, const taut::BasicCpuArray<E>& x) {
  auto out = taut::BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  const std::int64_t n = x.shape()[-1];
  const E* from = x.data();
  E* to = out.mutable_data();
  const auto sum_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double total = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t i = row * n + (op.reverse ? n - 1 - k : k);
        total += static_cast<double>(from[i]);
        to[i] = static_cast<E>(total);
      }
    }
  };
  if (n > 0) taut::cpu::parallel_for(x.shape().size() / n, 1 + taut::cpu::default_grain / n, sum_rows);
  return out;
}

}  // namespace mine
