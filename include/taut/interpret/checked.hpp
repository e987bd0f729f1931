#pragma once
// `Checked<T>`: computes as T does and throws at the first NaN or infinity.

#include <cmath>
#include <string>
#include <string_view>

#include "../op/reduce.hpp"
#include "wrapper.hpp"

namespace taut {

/// A T whose operators' results are checked: an operator that yields a NaN or an infinity throws `Error` with
/// its name, the place and the operands' shapes. For finding where a training run goes wrong; it reads every
/// result once more.
template <class T> class Checked : public Wrapper<Checked<T>, T> {
 public:
  using Wrapper<Checked<T>, T>::Wrapper;
};

template <class X> inline constexpr bool is_checked = false;
template <class T> inline constexpr bool is_checked<Checked<T>> = true;

namespace detail {

/// Throws for the first element that is not finite.
template <class T>
void require_finite(std::string_view op, const T& result, std::initializer_list<Shape> operands) {
  // x - x is 0 for finite x and NaN otherwise: one number tells.
  if (result.shape().size() == 0 || sum(result - result).item() == 0) return;
  const auto values = result.to_host();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    std::string text(op);
    text += std::string(": the result has ") + (std::isnan(values[i]) ? "a NaN" : "an infinity") +
            " at element " + std::to_string(i) + " of shape " + to_string(result.shape()) + "; operands";
    for (const auto& shape : operands) text.append(" ").append(to_string(shape));
    throw Error(text);
  }
}

}  // namespace detail

/// The meaning of every operator for `Checked<T>`: T's, with the result checked. Operators that end with an
/// activation are taken apart, since it may cut an infinity off.
template <class Op, class... Xs>
requires is_checked<OutermostOf<Xs...>>
auto eval(const Op& op, Xs&&... xs) -> WrappedResult<OutermostOf<Xs...>, Op, Xs...> {
  using C = OutermostOf<Xs...>;
  using Result = WrappedResult<C, Op, Xs...>;
  if constexpr (requires { Op::ends_with_activation; }) return decomposed(op, wrap_operand<C>(xs)...);
  const std::initializer_list<Shape> shapes = {Shape(xs.shape())...};
  auto result = eval(op, unwrap_operand<C>(std::forward<Xs>(xs))...);
  if constexpr (std::same_as<Result, C>) detail::require_finite(Op::name, leaf_value(result), shapes);
  return Result(std::move(result));
}

}  // namespace taut
