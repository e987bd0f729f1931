#pragma once
// The update rule of stochastic gradient descent, by itself: what kernels are compiled from.

#include <string_view>

namespace taut::optim {

/// Stochastic gradient descent, as PyTorch's `SGD`: with g' = g + weight_decay p and m ← momentum m + g',
/// p ← p - lr m, or p - lr (g' + momentum m) with Nesterov's momentum.
struct SgdRule {
  static constexpr std::string_view name = "sgd";
  static constexpr int states = 1;
  double lr = 1e-3, momentum = 0, weight_decay = 0;
  bool nesterov = false;

  template <class S> constexpr void operator()(S& p, S g, S& m) const {
    g = g + S(weight_decay) * p;
    m = S(momentum) * m + g;
    p = p - S(lr) * (nesterov ? g + S(momentum) * m : m);
  }
};

}  // namespace taut::optim
