#pragma once
// What an operator is, and how `eval` finds its meaning.
//
// An operator is a small struct: its options, a `name`, a `shape` rule and a gradient rule (`pullback`), or a
// `decompose` into other operators. `eval(op, xs…)`, found by argument-dependent lookup, gives it a meaning
// for the type of its operands: a kernel on a leaf, one generic template on every other interpretation.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../core/shape.hpp"

namespace taut {

/// Any interpretation: a type that says it is a tensor by a member type `tensor_tag`.
template <class T>
concept AnyTensor = requires {
  typename std::remove_cvref_t<T>::tensor_tag;
};

/// The base of a leaf outside of this namespace. It makes the leaf a tensor, and has argument-dependent
/// lookup find Taut's functions and arithmetic for it.
struct TensorBase {
  using tensor_tag = void;
};

namespace op {
/// The base of elementwise operators. The derived struct has a `name` and a branch-free scalar function
/// `template <class S> constexpr S operator()(S x…) const`; shape, broadcasting, kernels and gradients
/// follow.
struct Elementwise {};
}  // namespace op

template <class Op>
concept ElementwiseOp = std::derived_from<Op, op::Elementwise>;

/// The shape of an operator's result: its own rule, or broadcasting for the elementwise ones.
template <class Op, std::same_as<Shape>... Shapes>
constexpr Shape infer_shape([[maybe_unused]] const Op& op, const Shapes&... shapes) {
  if constexpr (ElementwiseOp<Op>)
    return broadcast_all(Op::name, shapes...);
  else
    return op.shape(shapes...);
}

/// What a tensor takes up in memory if its elements lie one after the other. An operator may have a rule
/// `bytes(result, operands…)` of these: how many bytes it has to move, where that is not each operand once
/// and the result once.
struct DenseSize {
  Shape shape;
  std::int64_t element_size = 4;  ///< in bytes

  constexpr std::int64_t bytes() const { return shape.size() * element_size; }
};

/// Which operands' gradients are wanted of a gradient rule of N operands, a bit each.
template <int N> struct Needs {
  std::uint32_t bits = 0;

  constexpr bool operator[](int i) const { return bits >> i & 1; }
};

/// How many interpretations a tensor type is wrapped in: 0 for a leaf, one more than its `Inner` otherwise.
template <class T> constexpr int depth() {
  if constexpr (requires { typename T::Inner; })
    return 1 + depth<typename T::Inner>();
  else
    return 0;
}

/// The operands of an operator, a bit each, through which no gradient passes, although they are tensors:
/// those by which the derivative vanishes, or which the operator's rule accounts for otherwise.
template <class Op> inline constexpr std::uint32_t constant_operands = 0;
template <class Op>
requires requires { Op::constant_operands; }
inline constexpr std::uint32_t constant_operands<Op> = Op::constant_operands;

namespace detail {
template <class A, class B> using Deeper = std::conditional_t<(depth<A>() >= depth<B>()), A, B>;

template <class T, class... Rest> struct Outermost { using type = T; };
template <class A, class B, class... Rest>
struct Outermost<A, B, Rest...> : Outermost<Deeper<A, B>, Rest...> {};
}  // namespace detail

/// The operand type that decides the meaning of an `eval`: the most deeply wrapped one. The others are
/// constants to it.
template <class... Xs> using OutermostOf = typename detail::Outermost<std::remove_cvref_t<Xs>...>::type;

/// The value inside all wrappers.
template <class T> constexpr const auto& leaf_value(const T& x) {
  if constexpr (requires { typename T::Inner; })
    return leaf_value(x.value());
  else
    return x;
}

namespace detail {
/// The type of the value inside all wrappers.
template <class T> using LeafOf = std::remove_cvref_t<decltype(leaf_value(std::declval<const T&>()))>;
}  // namespace detail

/// What a wrapper type `W` passes on to its inner `eval`: the value inside its own operands, others as they
/// are.
template <class W, class X> constexpr decltype(auto) unwrap_operand(X&& x) {
  if constexpr (std::same_as<std::remove_cvref_t<X>, W>)
    return std::forward<X>(x).value();
  else
    return std::forward<X>(x);
}

/// The opposite: a tensor operand as a `W`, to which those of other types are constants; index tensors as
/// they are.
template <class W, class X> constexpr decltype(auto) wrap_operand(const X& x) {
  if constexpr (!std::same_as<X, W> && std::convertible_to<const X&, W>)
    return W(x);
  else
    return (x);
}

/// The result of an operator on what the operands of a wrapper `W` hold.
template <class W, class Op, class... Xs>
using InnerResult = decltype(eval(std::declval<const Op&>(), unwrap_operand<W>(std::declval<Xs>())...));

namespace detail {
template <class W, class Op, class... Xs> struct WrappedResultOf {};
template <class W, class Op, class... Xs>
requires requires {
  typename W::Inner;
  typename InnerResult<W, Op, Xs...>;
}
struct WrappedResultOf<W, Op, Xs...> {
  using Result = InnerResult<W, Op, Xs...>;
  using type = std::conditional_t<std::same_as<Result, typename W::Inner>, W, Result>;
};
}  // namespace detail

/// The wrapper's own result: the inner tensor is wrapped again, an index tensor stays as it is. There is none
/// where the inner type has no such operator.
template <class W, class Op, class... Xs>
using WrappedResult = typename detail::WrappedResultOf<W, Op, Xs...>::type;

template <class Op, class... Xs>
concept Decomposable = requires(const Op& op, const Xs&... xs) {
  op.decompose(xs...);
};

/// A composite operator's decomposition, once its own rule has found that the operands fit.
template <class Op, class... Xs> constexpr auto decomposed(const Op& op, const Xs&... xs) {
  (void)infer_shape(op, Shape(xs.shape())...);
  return op.decompose(xs...);
}

/// The meaning of a composite operator for a leaf without a kernel of its own for it.
template <class Op, class... Xs>
requires(depth<OutermostOf<Xs...>>() == 0 && Decomposable<Op, Xs...>) constexpr auto eval(const Op& op,
                                                                                          const Xs&... xs) {
  return decomposed(op, xs...);
}

}  // namespace taut
