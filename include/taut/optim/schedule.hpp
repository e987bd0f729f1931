#pragma once
// Learning-rate schedules: plain functions of the step (or the epoch, as the caller counts).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "../core/error.hpp"

namespace taut::optim {

/// base γ^⌊step / step_size⌋, as PyTorch's `StepLR`.
struct StepSchedule {
  double base = 1e-3;
  std::int64_t step_size = 1;
  double gamma = 0.1;

  double operator()(std::int64_t step) const {
    if (step_size < 1)
      throw Error("StepSchedule: expected a step size of at least 1, got " + std::to_string(step_size));
    return base * std::pow(gamma, static_cast<double>(step / step_size));
  }
};

/// From `base` down to `minimum` on half a cosine over `steps`, as PyTorch's `CosineAnnealingLR` (Loshchilov
/// and Hutter, "SGDR", 2017), after a linear rise over the first `warmup` steps; `minimum` from then on.
struct CosineSchedule {
  double base = 1e-3;
  std::int64_t steps = 1;
  double minimum = 0;
  std::int64_t warmup = 0;

  double operator()(std::int64_t step) const {
    if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double span = static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
    const double t = std::min(1.0, static_cast<double>(step - warmup) / span);
    return minimum + (base - minimum) * (1 + std::cos(std::numbers::pi * t)) / 2;
  }
};

}  // namespace taut::optim
