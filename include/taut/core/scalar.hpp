#pragma once
// The scalar vocabulary of elementwise operators: branch-free selection, and the extremes that propagate NaN.
// Each works alike on `float`, `double`, a SIMD pack, a dual number and a `Dependence`.

#include <cmath>

namespace taut {

/// Types an elementwise functor computes in: everything that is not itself a tensor.
template <class S>
concept Scalar = !requires {
  typename S::tensor_tag;
};

/// `condition ? a : b` for plain scalars; packs and dual numbers have their own. Functors use it instead of
/// `if`, so that one functor serves all of them.
template <Scalar S> constexpr S select(bool condition, S a, S b) { return condition ? a : b; }

// NaN is told by `a == a`: the `!=` of xsimd's packs for AVX and AVX-512 is false, not true, where either is
// NaN.

/// The larger of two values; NaN if either is NaN, as `torch.maximum`.
template <Scalar S> constexpr S maximum(S a, S b) { return select(a > b, a, select(a == a, b, a)); }

/// The smaller of two values; NaN if either is NaN, as `torch.minimum`.
template <Scalar S> constexpr S minimum(S a, S b) { return select(a < b, a, select(a == a, b, a)); }

/// Whether a value is exactly zero, as a condition for `select`.
template <Scalar S> constexpr auto is_zero(S a) { return a == S(0); }

/// The product of a tangent and a value in which a zero tangent wins over an infinite or NaN value: what does
/// not depend on the input contributes nothing to its derivative, whatever its size.
template <Scalar S> constexpr S tangent_product(S tangent, S value) {
  return select(is_zero(tangent), S(0), tangent * value);
}

}  // namespace taut
