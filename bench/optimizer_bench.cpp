// A step of SGD with momentum, Adam and AdamW over the 11 million parameters of ResNet-18, and of ResNet-20's
// 270 thousand, with and without clipping of the gradients by their norm. `GB/s` counts what a rule must
// move: it reads the gradient, and reads and writes the parameter and each state, once; clipping reads the
// gradients once more. `limit` is what a triad in place reaches over as many bytes, and `of_peak` the share
// of it; `memory` is what a triad reaches out of main memory, where the step finds its operands in training,
// in GB/s.

#include <taut/nn/resnet.hpp>
#include <taut/taut.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "report.hpp"

using namespace taut;

namespace {

using Net = nn::ResNet<Grad<CpuArray>>;

Net resnet18(Rng& rng) { return nn::resnet18<Grad<CpuArray>>(10, nn::Stem::cifar, rng); }
Net resnet20(Rng& rng) { return nn::cifar_resnet<Grad<CpuArray>>(20, 10, rng); }

/// The first parameter after `steps` steps with one gradient, in double.
template <class Rule> double reference(Rule rule, double parameter, double gradient, std::int64_t steps) {
  std::array<double, static_cast<std::size_t>(Rule::states)> states{};
  for (std::int64_t step = 1; step <= steps; ++step) {
    if constexpr (requires { rule.begin_step(step); }) rule.begin_step(step);
    std::apply([&](auto&... state) { rule(parameter, gradient, state...); }, states);
  }
  return parameter;
}

template <class Rule> void step(benchmark::State& state, Net net, const Rule& rule, double clip_norm) {
  Rng rng(1);
  const auto all = parameters(net);
  std::vector<CpuArray> gradients;
  double squares = 0, count = 0;
  for (const auto* parameter : all) {
    gradients.push_back(CpuArray::normal(parameter->shape(), 0, 1e-3f, rng));
    squares += static_cast<double>(sum(square(gradients.back())).item());
    count += static_cast<double>(parameter->shape().size());
  }
  const double scale = clip_norm > 0 ? std::min(1.0, clip_norm / std::sqrt(squares)) : 1;
  const double first = static_cast<double>(all[0]->value().data()[0]);
  optim::RuleOptimizer<Rule> optimizer(net, rule);
  optimizer.set_clip_norm(clip_norm);
  const auto call = [&] {
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->slot()->contribute(gradients[i]);
    optimizer.step();
  };
  const double moved = 1 + Rule::states;
  bench::measure(state,
                 {.read = 4 * (moved + (clip_norm > 0 ? 2 : 1)) * count,
                  .written = 4 * moved * count,
                  .footprint = 4 * (moved + 1) * count,
                  .in_place = true},
                 call);
  state.counters["memory"] = 1e-9 * bench::memory_bandwidth(taut::threads());
  const double expected =
      reference(rule, first, scale * static_cast<double>(gradients[0].data()[0]), optimizer.steps());
  const CpuArray& weights = all[0]->value();
  bench::check(
      state,
      bench::varied(weights.span()) && bench::near(static_cast<double>(weights.data()[0]), expected, 1e-3),
      "the parameter is not where the rule takes it");
}

template <class Rule> void add(const std::string& name, const Rule& rule) {
  const std::pair<std::string, Net (*)(Rng&)> networks[] = {{"resnet18", resnet18}, {"resnet20", resnet20}};
  for (const auto& [network, make] : networks)
    for (const double clip_norm : {0.0, 1e-2})
      bench::add(network + "/" + name + (clip_norm > 0 ? "/clipped" : ""),
                 [rule, make = make, clip_norm](benchmark::State& state) {
                   Rng rng(1);
                   step(state, make(rng), rule, clip_norm);
                 });
}

const bool registered = [] {
  add("sgd", optim::SgdRule{.lr = 1e-4, .momentum = 0.9, .weight_decay = 5e-4});
  add("adam", optim::AdamRule<false>{.lr = 1e-5});
  add("adamw", optim::AdamRule<true>{.lr = 1e-5});
  return true;
}();

}  // namespace
