#pragma once
// Arithmetic of two tensors, or of a tensor and a scalar, with broadcasting.

#include <string_view>

#include "partial.hpp"

namespace taut {

namespace op {

/// a + b
struct Add : Elementwise {
  static constexpr std::string_view name = "add";
  template <class S> constexpr S operator()(S a, S b) const { return a + b; }
};

/// a - b
struct Sub : Elementwise {
  static constexpr std::string_view name = "sub";
  template <class S> constexpr S operator()(S a, S b) const { return a - b; }
};

/// a b
struct Mul : Elementwise {
  static constexpr std::string_view name = "mul";
  template <class S> constexpr S operator()(S a, S b) const { return a * b; }
};

/// a / b
struct Div : Elementwise {
  static constexpr std::string_view name = "div";
  template <class S> constexpr S operator()(S a, S b) const { return a / b; }
};

/// aᵇ, with 0⁰ = 1
struct Pow : Elementwise {
  static constexpr std::string_view name = "pow";
  template <class S> constexpr S operator()(S a, S b) const { return power(a, b); }
};

/// max(a, b); NaN if either is. The gradient at a tie is shared equally, as in PyTorch.
struct Maximum : Elementwise {
  static constexpr std::string_view name = "maximum";
  template <class S> constexpr S operator()(S a, S b) const { return maximum(a, b); }
};

/// min(a, b); NaN if either is. The gradient at a tie is shared equally, as in PyTorch.
struct Minimum : Elementwise {
  static constexpr std::string_view name = "minimum";
  template <class S> constexpr S operator()(S a, S b) const { return minimum(a, b); }
};

/// A binary elementwise function with a scalar in place of one argument: f(x, value), or f(value, x).
template <class F, int Position> struct Bind : Elementwise {
  static constexpr std::string_view name = F::name;
  F f;
  double scalar;

  template <class S> constexpr S operator()(S x) const {
    if constexpr (Position == 0)
      return f(S(scalar), x);
    else
      return f(x, S(scalar));
  }
};

}  // namespace op

/// Two operands of a binary operator: tensors, or one tensor and a number.
template <class A, class B>
concept BinaryOperands = (AnyTensor<A> && (AnyTensor<B> || std::is_arithmetic_v<std::remove_cvref_t<B>>)) ||
                         (std::is_arithmetic_v<std::remove_cvref_t<A>> && AnyTensor<B>);

namespace detail {

template <class Op, class A, class B> constexpr auto binary(Op op, A&& a, B&& b) {
  if constexpr (!AnyTensor<A>)
    return eval(taut::op::Bind<Op, 0>{{}, op, static_cast<double>(a)}, std::forward<B>(b));
  else if constexpr (!AnyTensor<B>)
    return eval(taut::op::Bind<Op, 1>{{}, op, static_cast<double>(b)}, std::forward<A>(a));
  else
    return eval(op, std::forward<A>(a), std::forward<B>(b));
}

}  // namespace detail

/// Applies an elementwise functor to tensors, which broadcast: one pass forward, and one per operand
/// backward. The functor derives from `op::Elementwise`.
template <ElementwiseOp F, AnyTensor... Xs> constexpr auto map(const F& f, Xs&&... xs) {
  return eval(f, std::forward<Xs>(xs)...);
}

/// a + b, elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto operator+(A&& a, B&& b) {
  return detail::binary(op::Add{}, std::forward<A>(a), std::forward<B>(b));
}

/// a - b, elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto operator-(A&& a, B&& b) {
  return detail::binary(op::Sub{}, std::forward<A>(a), std::forward<B>(b));
}

/// a b, elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto operator*(A&& a, B&& b) {
  return detail::binary(op::Mul{}, std::forward<A>(a), std::forward<B>(b));
}

/// a / b, elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto operator/(A&& a, B&& b) {
  return detail::binary(op::Div{}, std::forward<A>(a), std::forward<B>(b));
}

/// -a
template <AnyTensor A> constexpr auto operator-(A&& a) {
  return detail::binary(op::Mul{}, -1.0, std::forward<A>(a));
}

/// aᵇ, elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast. 0⁰ = 1, as in PyTorch.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto pow(A&& a, B&& b) { return detail::binary(op::Pow{}, std::forward<A>(a), std::forward<B>(b)); }

/// max(a, b), elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast. NaN propagates.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto maximum(A&& a, B&& b) {
  return detail::binary(op::Maximum{}, std::forward<A>(a), std::forward<B>(b));
}

/// min(a, b), elementwise with broadcasting; either may be a number. Throws `ShapeError`
/// if the shapes do not broadcast. NaN propagates.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto minimum(A&& a, B&& b) {
  return detail::binary(op::Minimum{}, std::forward<A>(a), std::forward<B>(b));
}

}  // namespace taut
