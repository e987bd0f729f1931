#pragma once
// Derivatives of elementwise operators, themselves elementwise operators: so they are fused kernels on every
// leaf and have derivatives in turn.

#include <array>
#include <string_view>
#include <utility>

#include "../core/dependence.hpp"
#include "../core/dual.hpp"
#include "operator.hpp"

namespace taut {

namespace detail {

/// The tangent of f(x…) when the tangent of argument `I` is `seed` and all others are 0.
template <int I, class F, class S, class... Ss> constexpr S tangent(const F& f, S seed, Ss... x) {
  return [&]<int... K>(std::integer_sequence<int, K...>) { return f(Dual<S>(x, K == I ? seed : S(0))...).d; }
  (std::make_integer_sequence<int, sizeof...(Ss)>{});
}

}  // namespace detail

namespace op {

/// g ∂f/∂x_I, a function of (g, x₀, x₁, …).
template <class F, int I> struct Partial : Elementwise {
  static constexpr std::string_view name = F::name;
  F f;

  template <class S, std::same_as<S>... Ss> constexpr S operator()(S g, Ss... x) const {
    return detail::tangent<I>(f, g, x...);
  }
  /// Operands on which the derivative does not depend are not read: others may stand in for them.
  template <std::same_as<DenseSize>... Operands>
  constexpr std::int64_t bytes(const DenseSize& result, const Operands&... operands) const {
    auto read = [&]<int... K>(std::integer_sequence<int, K...>) {
      return (*this)(Dependence::on(K)...).inputs;
    }
    (std::make_integer_sequence<int, sizeof...(Operands)>{});
    std::int64_t total = result.bytes();
    ((total += read & 1 ? operands.bytes() : 0, read >>= 1), ...);
    return total;
  }
};

/// g f'(x) of a unary function that can state it by its result y = f(x): saves y, which is often kept anyway,
/// instead of x, and computes less.
template <class F> struct PartialFromOutput : Elementwise {
  static constexpr std::string_view name = F::name;
  F f;

  template <class S> constexpr S operator()(S g, S y) const { return f.gradient_from_output(g, y); }
};

}  // namespace op

/// Operators with a member `gradient_from_output(g, y)`.
template <class Op>
concept HasOutputGradient = requires(const Op& op, float s) {
  op.gradient_from_output(s, s);
};

/// What the derivative of an elementwise function by one argument is made of.
struct PartialPlan {
  bool zero = false;         ///< it vanishes identically: nothing to record
  bool identity = false;     ///< it is the incoming gradient itself: no kernel to run
  std::uint32_t inputs = 0;  ///< the operands it depends on (a bit each), which have to be saved
};

namespace detail {

template <class Op, int... K>
constexpr PartialPlan plan_partial(const Op& op, int wanted, std::integer_sequence<int, K...>) {
  using D = Dual<Dependence>;
  const Dependence d = op(D(Dependence::on(K), K == wanted ? Dependence::the_seed() : Dependence(0))...).d;
  return {d.zero, d.seed, d.inputs};
}

}  // namespace detail

/// The plans of all `N` partial derivatives of an elementwise operator.
template <int N, class Op> constexpr std::array<PartialPlan, N> plan_partials(const Op& op) {
  std::array<PartialPlan, N> plans;
  for (int i = 0; i < N; ++i)
    plans[static_cast<std::size_t>(i)] = detail::plan_partial(op, i, std::make_integer_sequence<int, N>{});
  return plans;
}

}  // namespace taut
