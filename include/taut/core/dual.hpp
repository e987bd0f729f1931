#pragma once
// Dual numbers: a value and its tangent. An elementwise functor evaluated on them yields its derivative, on
// dual numbers of dual numbers its second one, and so on (forward-mode differentiation; Griewank and Walther,
// "Evaluating Derivatives", chapter 3).

#include <numbers>
#include <type_traits>

#include "scalar.hpp"

namespace taut {

/// `v + d ε` with ε² = 0. `S` is `float`, `double`, a SIMD pack or another `Dual`.
template <class S> struct Dual {
  S v, d;

  constexpr Dual(S value, S tangent) : v(value), d(tangent) {}
  constexpr Dual(S value) : v(value), d(S(0)) {}
  template <class A>
  requires(std::is_arithmetic_v<A> && !std::is_same_v<A, S>) constexpr Dual(A value) : v(S(value)), d(S(0)) {}

  friend constexpr Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
  friend constexpr Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
  friend constexpr Dual operator-(Dual a) { return {-a.v, -a.d}; }
  friend constexpr Dual operator*(Dual a, Dual b) {
    return {a.v * b.v, tangent_product(a.d, b.v) + tangent_product(b.d, a.v)};
  }
  friend constexpr Dual operator/(Dual a, Dual b) {
    const S q = a.v / b.v;  // dividing twice instead of by b² keeps huge and tiny b in range
    return {q, (a.d - tangent_product(b.d, q)) / b.v};
  }

  friend constexpr auto operator<(Dual a, Dual b) { return a.v < b.v; }
  friend constexpr auto operator<=(Dual a, Dual b) { return a.v <= b.v; }
  friend constexpr auto operator>(Dual a, Dual b) { return a.v > b.v; }
  friend constexpr auto operator>=(Dual a, Dual b) { return a.v >= b.v; }
  friend constexpr auto operator==(Dual a, Dual b) { return a.v == b.v; }
  friend constexpr auto operator!=(Dual a, Dual b) { return a.v != b.v; }

  /// For conditions of packs; a single truth takes the `select` of plain scalars.
  template <class Condition>
  requires(!std::is_same_v<Condition, bool>) friend constexpr Dual
      select(const Condition& condition, Dual a, Dual b) {
    return {select(condition, a.v, b.v), select(condition, a.d, b.d)};
  }
  friend constexpr auto is_zero(Dual a) { return is_zero(a.v) && is_zero(a.d); }

  // At ties the tangents are averaged, as PyTorch does.
  friend constexpr Dual maximum(Dual a, Dual b) {
    const S tie = tangent_product(a.d + b.d, S(0.5));
    return {maximum(a.v, b.v), select(a.v > b.v, a.d, select(b.v > a.v, b.d, tie))};
  }
  friend constexpr Dual minimum(Dual a, Dual b) {
    const S tie = tangent_product(a.d + b.d, S(0.5));
    return {minimum(a.v, b.v), select(a.v < b.v, a.d, select(b.v < a.v, b.d, tie))};
  }

  friend constexpr Dual exp(Dual a) {
    using std::exp;
    const S y = exp(a.v);
    return {y, tangent_product(a.d, y)};
  }
  friend constexpr Dual log(Dual a) {
    using std::log;
    return {log(a.v), a.d / a.v};
  }
  friend constexpr Dual log1p(Dual a) {
    using std::log1p;
    return {log1p(a.v), a.d / (S(1) + a.v)};
  }
  friend constexpr Dual expm1(Dual a) {
    using std::expm1;
    const S y = expm1(a.v);
    return {y, tangent_product(a.d, y + S(1))};
  }
  friend constexpr Dual sqrt(Dual a) {
    using std::sqrt;
    const S y = sqrt(a.v);
    return {y, a.d / (S(2) * y)};
  }
  friend constexpr Dual sin(Dual a) {
    using std::cos, std::sin;
    return {sin(a.v), tangent_product(a.d, cos(a.v))};
  }
  friend constexpr Dual cos(Dual a) {
    using std::cos, std::sin;
    return {cos(a.v), tangent_product(a.d, -sin(a.v))};
  }
  friend constexpr Dual tanh(Dual a) {
    using std::tanh;
    const S y = tanh(a.v);
    return {y, tangent_product(a.d, S(1) - y * y)};
  }
  friend constexpr Dual erf(Dual a) {
    using std::erf, std::exp;
    return {erf(a.v), tangent_product(a.d, S(2 * std::numbers::inv_sqrtpi) * exp(-a.v * a.v))};
  }
  friend constexpr Dual abs(Dual a) {  // the subgradient 0 at 0
    using std::abs;
    const S zero(0);
    return {abs(a.v), select(a.v > zero, a.d, select(a.v < zero, -a.d, tangent_product(a.d, a.v)))};
  }
  /// d aᵇ = b aᵇ⁻¹ da + aᵇ ln a db, with PyTorch's conventions: the first term is 0 for b = 0, the second is
  /// 0 for a = 0 and b >= 0.
  friend constexpr Dual pow(Dual a, Dual b) {
    using std::log;
    const S zero(0), y = power(a.v, b.v);
    const S by_base = select(is_zero(b.v), zero, b.v * power(a.v, b.v - S(1)));
    const S by_exponent = select(is_zero(a.v) && b.v >= zero, zero, y * log(a.v));
    return {y, tangent_product(a.d, by_base) + tangent_product(b.d, by_exponent)};
  }
};

}  // namespace taut
