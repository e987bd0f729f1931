#pragma once
// Comparisons, whose results are tensors of ones (true) and zeros (false), and selection by such a tensor.
// The derivatives of a comparison vanish, so nothing is recorded for it. Names as in PyTorch.

#include <string_view>

#include "arithmetic.hpp"

namespace taut {

namespace op {

/// 1 where a = b, else 0
struct Eq : Elementwise {
  static constexpr std::string_view name = "eq";
  template <class S> constexpr S operator()(S a, S b) const { return select(a == b, S(1), S(0)); }
};

/// 1 where a ≠ b, else 0; 1 where either is NaN. By `==`, for `!=` of xsimd's packs is false for NaN.
struct Ne : Elementwise {
  static constexpr std::string_view name = "ne";
  template <class S> constexpr S operator()(S a, S b) const { return select(a == b, S(0), S(1)); }
};

/// 1 where a < b, else 0
struct Lt : Elementwise {
  static constexpr std::string_view name = "lt";
  template <class S> constexpr S operator()(S a, S b) const { return select(a < b, S(1), S(0)); }
};

/// 1 where a ≤ b, else 0
struct Le : Elementwise {
  static constexpr std::string_view name = "le";
  template <class S> constexpr S operator()(S a, S b) const { return select(a <= b, S(1), S(0)); }
};

/// a where the condition is not 0 (NaN is not), else b
struct Where : Elementwise {
  static constexpr std::string_view name = "where";
  template <class S> constexpr S operator()(S condition, S a, S b) const {
    return select(condition == S(0), b, a);
  }
};

}  // namespace op

/// 1 where a = b, else 0. Throws `ShapeError` if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto eq(A&& a, B&& b) { return detail::binary(op::Eq{}, std::forward<A>(a), std::forward<B>(b)); }

/// 1 where a ≠ b, else 0. Throws `ShapeError` if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto ne(A&& a, B&& b) { return detail::binary(op::Ne{}, std::forward<A>(a), std::forward<B>(b)); }

/// 1 where a < b, else 0; 0 where either is NaN. Throws `ShapeError` if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto lt(A&& a, B&& b) { return detail::binary(op::Lt{}, std::forward<A>(a), std::forward<B>(b)); }

/// 1 where a ≤ b, else 0; 0 where either is NaN. Throws `ShapeError` if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto le(A&& a, B&& b) { return detail::binary(op::Le{}, std::forward<A>(a), std::forward<B>(b)); }

/// 1 where a > b, else 0; 0 where either is NaN. Throws `ShapeError` if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto gt(A&& a, B&& b) { return lt(std::forward<B>(b), std::forward<A>(a)); }

/// 1 where a ≥ b, else 0; 0 where either is NaN. Throws `ShapeError` if the shapes do not broadcast.
template <class A, class B>
requires BinaryOperands<A, B>
constexpr auto ge(A&& a, B&& b) { return le(std::forward<B>(b), std::forward<A>(a)); }

/// `a` where `condition` is not 0, else `b`, elementwise with broadcasting. What is not selected gets no
/// gradient, not even of an infinity.
template <AnyTensor C, AnyTensor A, AnyTensor B> constexpr auto where(C&& condition, A&& a, B&& b) {
  return eval(op::Where{}, std::forward<C>(condition), std::forward<A>(a), std::forward<B>(b));
}

}  // namespace taut
