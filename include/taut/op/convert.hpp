#pragma once
// Conversion between leaves of different element types, such as float and bfloat16.

#include <concepts>
#include <string_view>

#include "operator.hpp"
#include "widened.hpp"

namespace taut {

namespace op {

/// The elements of x as those of the leaf `To`, rounded to nearest. The result is a `To` without the
/// interpretations around x, so it is a constant to `Grad`.
template <AnyTensor To> struct Convert {
  static constexpr std::string_view name = "convert";
  constexpr Shape shape(const Shape& x) const { return x; }
};

}  // namespace op

/// x as a tensor of type To, rounded to its elements: x itself if it is one, and otherwise a constant.
template <AnyTensor To, AnyTensor X> To convert(const X& x) {
  if constexpr (std::same_as<To, X>)
    return x;
  else if constexpr (requires { typename To::Inner; })
    return To(convert<typename To::Inner>(x));
  else
    return eval(op::Convert<To>{}, x);
}

/// x in its wide type: itself, or of bfloat16 a constant in `float`, with all its digits. What is computed of
/// that is rounded as floats are: `cross_entropy(widen(logits), labels).item()` is a loss to log.
template <AnyTensor X> Widened<X> widen(const X& x) { return convert<Widened<X>>(x); }

}  // namespace taut
