#pragma once
// Derivatives as functions of functions. They nest: `grad` of a function that calls `grad` has second
// derivatives.

#include <tuple>
#include <utility>

#include "../op/arithmetic.hpp"
#include "../op/reduce.hpp"
#include "grad.hpp"

namespace taut {

namespace detail {

/// A tape that differentiates by leaves of its own alone. Other leaves that a function uses, such as a
/// model's parameters, are constants to it, and their gradients stay as they are.
template <class T> class FunctionTape : public Tape<T> {
 public:
  FunctionTape() : Tape<T>(Tape<T>::Leaves::own) {}

  Grad<T> leaf(const T& value) const {
    auto result = Grad<T>(value).track();
    result.slot()->recording.tape = this->id().tape;
    return result;
  }
};

/// ∂y/∂leaf after y has been played back; zero where y does not depend on the leaf.
template <class T> T gradient_of(const Grad<T>& y, const Grad<T>& leaf) {
  if (y.slot() == leaf.slot()) return T::ones(leaf.shape());
  return leaf.has_grad() ? leaf.grad() : T::zeros(leaf.shape());
}

}  // namespace detail

/// The function (x…) ↦ {f(x…), gradient}, where f takes tensors to a scalar tensor. The gradient is a tensor
/// for one argument and a tuple for several; it is zero by an argument that f does not depend on. f is called
/// with `Grad` values, so it takes them as a template: `value_and_grad([](const auto& x) { return sum(x * x);
/// })`.
template <class F> auto value_and_grad(F f) {
  return [f = std::move(f)]<class T, std::same_as<T>... Ts>(const T& x, const Ts&... xs) {
    detail::FunctionTape<T> tape;
    const std::tuple leaves{tape.leaf(x), tape.leaf(xs)...};
    const Grad<T> y = std::apply(f, leaves);
    require(y.shape().size() == 1, "grad: the function must return a scalar; reduce its result, as by sum",
            y.shape());
    if (tape.recorded(y)) tape.backward(y);
    if constexpr (sizeof...(Ts) == 0)
      return std::pair<T, T>(y.value(), detail::gradient_of(y, std::get<0>(leaves)));
    else
      return std::apply(
          [&](const auto&... leaf) {
            return std::pair(y.value(), std::tuple{detail::gradient_of(y, leaf)...});
          },
          leaves);
  };
}

/// The function (x…) ↦ gradient of f at x…; see `value_and_grad`.
template <class F> auto grad(F f) {
  return [both = value_and_grad(std::move(f))](const auto&... xs) { return both(xs...).second; };
}

/// The product of the Hessian of f at x and the vector v, by differentiating ⟨grad f, v⟩ (Pearlmutter, "Fast
/// Exact Multiplication by the Hessian", 1994): about twice the cost of a gradient, and no matrix.
template <class F, AnyTensor T> T hessian_vector_product(const F& f, const T& x, const T& v) {
  require(v.shape() == x.shape(), "hessian_vector_product: the vector must have the shape of x", v.shape(),
          x.shape());
  return grad([&](const auto& u) { return sum(grad(f)(u) * v); })(x);
}

}  // namespace taut
