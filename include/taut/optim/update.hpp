#pragma once
// What passes between the optimizers' engine and a leaf: update rules, and the tensors that one is applied
// to.

#include <array>
#include <concepts>
#include <string_view>

#include "../op/widened.hpp"

namespace taut::optim {

/// What an update rule is: its hyper-parameters, among them `lr`; `name`; `states`, how many numbers it keeps
/// for each parameter, all starting at 0; and `template <class S> void operator()(S& parameter, S gradient,
/// S&... state)`, branch-free. A rule that depends on the number of the step (from 1) has `begin_step(step)`.
template <class R>
concept UpdateRule = std::copyable<R> && requires(R rule) {
  { R::name } -> std::convertible_to<std::string_view>;
  { R::states } -> std::convertible_to<int>;
  rule.lr;
};

/// One parameter with its gradient and its state, as a leaf's `apply_update` and `sum_of_squares` take it. A
/// narrow leaf has a master of each parameter: the wide value that the rule is applied to, of which the
/// parameter is the nearest narrow one. Where it is not, the parameter has been given a new value since, and
/// the master starts from that.
template <class T, int States> struct UpdateItem {
  T* parameter;
  const T* gradient;
  std::array<Widened<T>*, States> state;
  Widened<T>* master = nullptr;  ///< null unless the leaf is narrow
};

}  // namespace taut::optim
