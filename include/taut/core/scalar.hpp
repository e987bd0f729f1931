#pragma once
// The scalar vocabulary of elementwise operators: branch-free selection, and the extremes that propagate NaN.
// Each works alike on `float`, `double`, a SIMD pack, a dual number and a `Dependence`.

#include <cmath>
#include <cstddef>

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

/// aᵇ as IEEE 754 defines it: 0⁰, NaN⁰ and 1 to any power are 1. The `pow` of xsimd's packs is exp(b ln a),
/// which is wrong there, so packs are computed element by element.
template <Scalar S> constexpr S power(S a, S b) {
  using std::pow;
  if constexpr (requires { a.store_unaligned(static_cast<typename S::value_type*>(nullptr)); }) {
    typename S::value_type x[S::size], y[S::size];
    a.store_unaligned(x);
    b.store_unaligned(y);
    for (std::size_t i = 0; i < S::size; ++i) x[i] = pow(x[i], y[i]);
    return S::load_unaligned(x);
  } else {
    return pow(a, b);
  }
}

/// Whether a value is exactly zero, as a condition for `select`.
template <Scalar S> constexpr auto is_zero(S a) { return a == S(0); }

/// The product of a tangent and a value in which a zero tangent wins over an infinite or NaN value: what does
/// not depend on the input contributes nothing to its derivative, whatever its size.
template <Scalar S> constexpr S tangent_product(S tangent, S value) {
  return select(is_zero(tangent), S(0), tangent * value);
}

}  // namespace taut
