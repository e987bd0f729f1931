#pragma once
// What passes between the optimizers' engine and a leaf: update rules, and the tensors that one is applied
// to.

#include <array>
#include <cmath>
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

/// The global norm of an optimizer's gradients, and the clipping by it. A leaf specialises this if its
/// `sum_of_squares` would have to wait for a device: `Scale` is then a type of its own that its
/// `apply_update` takes, made from 1 where nothing is clipped.
template <class Leaf> class GradientNorm {
 public:
  using Scale = double;

  /// Computes the norm, and what the gradients are to be multiplied by for a norm of at most `most`: min(1,
  /// most / (norm + 1e-6)), as PyTorch's `clip_grad_norm_`.
  template <class Items> Scale clip(const Items& items, double most) {
    value_ = std::sqrt(sum_of_squares(items));
    const double factor = most / (value_ + 1e-6);
    return factor >= 1 ? 1 : factor;
  }

  /// The norm that was computed last, or 0.
  double value() const { return value_; }

 private:
  double value_ = 0;
};

}  // namespace taut::optim
