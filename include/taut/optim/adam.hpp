#pragma once

#include "adam_rule.hpp"
#include "optimizer.hpp"

namespace taut::optim {

/// Adam, and AdamW with its decoupled weight decay, with `AdamRule`.
using Adam = RuleOptimizer<AdamRule<false>>;
using AdamW = RuleOptimizer<AdamRule<true>>;

}  // namespace taut::optim
