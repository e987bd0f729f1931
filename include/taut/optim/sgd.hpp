#pragma once

#include "optimizer.hpp"
#include "sgd_rule.hpp"

namespace taut::optim {

/// Stochastic gradient descent with `SgdRule`.
using Sgd = RuleOptimizer<SgdRule>;

}  // namespace taut::optim
