#pragma once
// `Dependence`: a scalar that computes nothing and remembers on which inputs its value depends. A functor
// evaluated on dual numbers of it tells which operands each derivative needs, and so which ones the tape has
// to save.

#include <cstdint>
#include <type_traits>

namespace taut {

/// The inputs (a bit each) that a value depends on, and whether it is the constant zero or exactly the seed;
/// of a condition, whether it holds for all inputs.
struct Dependence {
  std::uint32_t inputs = 0;
  bool zero = false, seed = false, holds = false;

  constexpr Dependence() = default;
  constexpr Dependence(std::uint32_t in, bool is_zero_, bool is_seed)
      : inputs(in), zero(is_zero_), seed(is_seed) {}
  template <class A>
  requires std::is_arithmetic_v<A>
  constexpr Dependence(A constant) : zero(constant == A(0)) {}

  static constexpr Dependence on(int input) { return {std::uint32_t{1} << input, false, false}; }
  static constexpr Dependence the_seed() { return {0, false, true}; }

  friend constexpr Dependence merge(Dependence a, Dependence b) {
    return {a.inputs | b.inputs, false, false};
  }

  friend constexpr Dependence operator+(Dependence a, Dependence b) {
    return a.zero ? b : b.zero ? a : merge(a, b);
  }
  friend constexpr Dependence operator-(Dependence a, Dependence b) { return b.zero ? a : merge(a, b); }
  friend constexpr Dependence operator-(Dependence a) { return a.zero ? a : merge(a, a); }
  friend constexpr Dependence operator*(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator/(Dependence a, Dependence b) { return a.zero ? a : merge(a, b); }
  friend constexpr Dependence tangent_product(Dependence tangent, Dependence value) {
    return tangent.zero ? tangent : merge(tangent, value);
  }

  // Conditions are dependences too.
  friend constexpr Dependence operator<(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator<=(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator>(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator>=(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator==(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator!=(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator&&(Dependence a, Dependence b) {
    Dependence both = merge(a, b);
    both.holds = a.holds && b.holds;
    return both;
  }
  friend constexpr Dependence operator||(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence operator!(Dependence a) { return merge(a, a); }
  friend constexpr Dependence is_zero(Dependence a) {
    Dependence condition = merge(a, a);
    condition.holds = a.zero;
    return condition;
  }
  friend constexpr Dependence select(Dependence condition, Dependence a, Dependence b) {
    if (condition.holds) return a;
    return a.zero && b.zero ? a : merge(condition, merge(a, b));
  }
  friend constexpr Dependence maximum(Dependence a, Dependence b) { return merge(a, b); }
  friend constexpr Dependence minimum(Dependence a, Dependence b) { return merge(a, b); }

  friend constexpr Dependence exp(Dependence a) { return merge(a, a); }
  friend constexpr Dependence expm1(Dependence a) { return merge(a, a); }
  friend constexpr Dependence log(Dependence a) { return merge(a, a); }
  friend constexpr Dependence log1p(Dependence a) { return merge(a, a); }
  friend constexpr Dependence sqrt(Dependence a) { return merge(a, a); }
  friend constexpr Dependence sin(Dependence a) { return merge(a, a); }
  friend constexpr Dependence cos(Dependence a) { return merge(a, a); }
  friend constexpr Dependence tanh(Dependence a) { return merge(a, a); }
  friend constexpr Dependence erf(Dependence a) { return merge(a, a); }
  friend constexpr Dependence abs(Dependence a) { return merge(a, a); }
  friend constexpr Dependence pow(Dependence a, Dependence b) { return merge(a, b); }
};

}  // namespace taut
