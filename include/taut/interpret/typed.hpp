#pragma once
// `Typed<T, S>`: a tensor whose shape is part of its type. The result's type follows from the operator's own
// shape rule, so operands that do not fit do not compile, and the diagnostic shows the rule's message.

#include "../op/operator.hpp"

namespace taut {

/// A T of the static shape S. Throws `ShapeError` if made from a value of another shape.
template <class T, Shape S> class Typed {
 public:
  using tensor_tag = void;
  using Inner = T;
  using Element = typename T::Element;

  explicit Typed(T value) : value_(std::move(value)) {
    require(value_.shape() == S, "typed: the value must have the shape of the type", value_.shape(), S);
  }

  static constexpr Shape shape() { return S; }
  const T& value() const& { return value_; }
  T&& value() && { return std::move(value_); }

  auto to_host() const { return value_.to_host(); }
  auto item() const { return value_.item(); }

 private:
  T value_;
};

template <class X> inline constexpr bool is_typed = false;
template <class T, Shape S> inline constexpr bool is_typed<Typed<T, S>> = true;

/// Applies an operator whose options are part of its type: `apply<op::SumTo{{3}}>(x)`. On `Typed` operands
/// the options take part in the static shape.
template <auto Op, class... Xs>
requires(is_typed<std::remove_cvref_t<Xs>>&&...) auto apply(Xs&&... xs) {
  constexpr Shape shape = infer_shape(Op, std::remove_cvref_t<Xs>::shape()...);
  auto value = eval(Op, std::forward<Xs>(xs).value()...);
  return Typed<decltype(value), shape>(std::move(value));
}

template <auto Op, AnyTensor... Xs>
requires(!is_typed<std::remove_cvref_t<Xs>> && ...) constexpr auto apply(Xs&&... xs) {
  return eval(Op, std::forward<Xs>(xs)...);
}

namespace detail {
/// The shape of an operator's result. In a function, so that g++ has nothing to add where it is an error.
template <class Op, class... Xs> consteval Shape typed_shape() {
  if constexpr (ElementwiseOp<Op>)
    return broadcast_all(Op::name, Xs::shape()...);
  else
    return Op{}.shape(Xs::shape()...);
}
}  // namespace detail

/// The meaning of every operator for `Typed`, with the options that it has by default; others are given by
/// `apply`, or throw `ShapeError` where the static shape turns out wrong. Options of elementwise operators do
/// not touch the shape.
template <class Op, class... Xs>
requires(is_typed<std::remove_cvref_t<Xs>>&&...) auto eval(const Op& op, Xs&&... xs) {
  auto value = eval(op, std::forward<Xs>(xs).value()...);
  using Result = Typed<decltype(value), detail::typed_shape<Op, std::remove_cvref_t<Xs>...>()>;
  require(value.shape() == Result::shape(), Op::name,
          "options are part of a typed operator's type; write apply<op::Sum{{0}}>(x) for sum(x, {0})",
          value.shape());
  return Result(std::move(value));
}

}  // namespace taut
