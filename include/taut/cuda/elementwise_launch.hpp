#pragma once
// The launcher of elementwise operators, as both the tensors' side and the kernels' side see it, and what is
// known of functors at compile time that spares kernels.

#include <type_traits>

#include "../op/arithmetic.hpp"
#include "map_plan.hpp"

namespace taut::cuda {

/// to = op(from₀, from₁, …) over a plan, for E float or bfloat16. Defined in map.cuh for the functors that a
/// `.cu` file names.
template <class Op, class E, int N>
void launch_map(const Op& op, const MapPlan& plan, E* to, const E* const* from, Stream stream);

/// How many times a functor has been differentiated.
template <class Op> inline constexpr int derivative_order = 0;
template <class F, int I> inline constexpr int derivative_order<op::Partial<F, I>> = 1 + derivative_order<F>;
template <class F> inline constexpr int derivative_order<op::PartialFromOutput<F>> = 1 + derivative_order<F>;

/// How many times the functors that a `.cu` file names are differentiated there.
inline constexpr int most_derivatives = 2;

namespace detail {

/// An instance of a functor that depends on its inputs in the way that all instances do: there is one for
/// functors without options and for what is made of them. (A bound scalar of 0 may make dependences vanish;
/// one of 1 has those of all others.)
template <class Op> struct Typical { static constexpr bool exists = std::is_empty_v<Op>; };
template <class Op>
requires std::is_empty_v<Op>
struct Typical<Op> {
  static constexpr bool exists = true;
  static constexpr Op instance() { return Op{}; }
};
template <class F, int Position> struct Typical<op::Bind<F, Position>> {
  static constexpr bool exists = Typical<F>::exists;
  static constexpr op::Bind<F, Position> instance() { return {{}, Typical<F>::instance(), 1.0}; }
};
template <class F, int I> struct Typical<op::Partial<F, I>> {
  static constexpr bool exists = Typical<F>::exists;
  static constexpr op::Partial<F, I> instance() { return {{}, Typical<F>::instance()}; }
};
template <class F> struct Typical<op::PartialFromOutput<F>> {
  static constexpr bool exists = Typical<F>::exists;
  static constexpr op::PartialFromOutput<F> instance() { return {{}, Typical<F>::instance()}; }
};

}  // namespace detail

/// What an operator of N operands comes to without computing.
enum class Triviality {
  none,
  zero,  ///< zeros
  first  ///< its first operand
};

template <class Op, int N> struct TrivialityOf { static constexpr Triviality value = Triviality::none; };
template <class F, int I, int N>
requires detail::Typical<F>::exists struct TrivialityOf<op::Partial<F, I>, N> {
  static constexpr PartialPlan plan =
      taut::detail::plan_partial(detail::Typical<F>::instance(), I, std::make_integer_sequence<int, N - 1>{});
  static constexpr Triviality value = plan.zero       ? Triviality::zero
                                      : plan.identity ? Triviality::first
                                                      : Triviality::none;
};

/// Whether a derivative vanishes, or is the incoming gradient, whatever the operands: then it has no kernel.
template <class Op, int N> consteval Triviality triviality() { return TrivialityOf<Op, N>::value; }

}  // namespace taut::cuda
