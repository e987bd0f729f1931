// One training step of a small network for MNIST (784-128-64-10, ReLU, cross-entropy, batch 64, SGD
// with momentum 0.9, weight decay 1e-4, clipping at 35) on synthetic data, against the floor that its
// floating-point operations set at the fused multiply-add peak measured in the same run. `by_floor` is the
// step's time by the floor.

#include <benchmark/benchmark.h>

#include <taut/taut.hpp>

#include "interleaved.hpp"
#include "operands.hpp"
#include "peaks.hpp"

using namespace taut;

namespace {

constexpr std::int64_t batch = 64;

/// Forward, weight gradients, and data gradients of all layers but the first.
constexpr double step_flops() {
  const double products = 784 * 128 + 128 * 64 + 64 * 10;
  return 2.0 * batch * (3 * products - 784 * 128);
}

template <class T> void mnist_mlp(benchmark::State& state, T) {
  set_threads(static_cast<int>(state.range(0)));
  Rng rng(1);
  auto model = nn::Mlp<Grad<T>>::make({784, 128, 64, 10}, rng);
  optim::Sgd sgd(model, {.lr = 0.01f, .momentum = 0.9f, .weight_decay = 1e-4f});
  sgd.set_clip_norm(35);
  const T x = T::uniform(Shape{batch, 784}, 0.0f, 1.0f, rng);
  const auto labels = bench::random_labels(batch, 10, rng);
  float first = 0, last = 0;
  const auto step = [&] {
    Tape<T> tape;
    const auto loss = cross_entropy(model(x), labels);
    last = loss.item();
    if (first == 0) first = last;
    tape.backward(loss);
    sgd.step();
  };
  double seconds = 0, by_floor = 0, peak = 0;
  for (auto _ : state) {
    std::vector<double> steps, ratios;
    for (int round = 0; round < 25; ++round) {
      peak = bench::measure_fma_peak(static_cast<int>(state.range(0)));
      steps.push_back(bench::seconds_per_call(step, 40));
      ratios.push_back(steps.back() / (step_flops() / peak));
    }
    seconds = bench::median(steps);
    by_floor = bench::median(ratios);
  }
  if (!(last < first)) state.SkipWithError("the loss did not fall");
  state.counters["us"] = 1e6 * seconds;
  state.counters["by_floor"] = by_floor;
  state.counters["peak_GFLOPs"] = 1e-9 * peak;
}

void step(benchmark::State& state) { mnist_mlp(state, CpuArray()); }
void profiled_step(benchmark::State& state) {
  reset_profile();
  mnist_mlp(state, Profiled<CpuArray>());
  std::string label = profile_report();
  state.SetLabel(label.insert(0, 1, '\n'));
}

}  // namespace

BENCHMARK(step)->Arg(1)->Arg(2)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(profiled_step)->Arg(1)->Arg(2)->Iterations(1)->Unit(benchmark::kMillisecond);
