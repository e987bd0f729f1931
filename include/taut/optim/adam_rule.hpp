#pragma once
// Adam's update rule, by itself: what kernels are compiled from.

#include <cmath>
#include <cstdint>
#include <string_view>

namespace taut::optim {

/// Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015), as PyTorch's `Adam` and `AdamW`:
/// with m ← β₁ m + (1 - β₁) g, v ← β₂ v + (1 - β₂) g² and the bias-corrected m̂ and v̂, p ← p - lr m̂ / (√v̂ +
/// eps). Weight decay is added to the gradient, or, `Decoupled`, taken from the parameter (Loshchilov and
/// Hutter, "Decoupled Weight Decay Regularization", 2019).
template <bool Decoupled> struct AdamRule {
  static constexpr std::string_view name = Decoupled ? "adamw" : "adam";
  static constexpr int states = 2;
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = Decoupled ? 1e-2 : 0;
  double step_size = 0, root_correction = 1;  ///< set by `begin_step`

  void begin_step(std::int64_t step) {
    step_size = lr / (1 - std::pow(beta1, static_cast<double>(step)));
    root_correction = 1 / std::sqrt(1 - std::pow(beta2, static_cast<double>(step)));
  }
  template <class S> constexpr void operator()(S& p, S g, S& m, S& v) const {
    using std::sqrt;
    if constexpr (Decoupled)
      p = p * S(1 - lr * weight_decay);
    else
      g = g + S(weight_decay) * p;
    m = S(beta1) * m + S(1 - beta1) * g;
    v = S(beta2) * v + S(1 - beta2) * g * g;
    p = p - S(step_size) * m / (sqrt(v) * S(root_correction) + S(eps));
  }
};

}  // namespace taut::optim
