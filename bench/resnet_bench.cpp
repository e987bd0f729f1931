// Training steps of ResNet-18 on images of 32 x 32, on random data: `cifar` with a stem of 3 x 3, `seed` with
// that for large images and biases in every convolution, `frost` the ResNet-20 of 16, 32 and 64 channels.
// `inside` is the share of the time that was spent in operators, `kernels` that in convolutions, pooling and
// normalisation; `conversions` how often a step changed the layout of images.

#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <taut/nn/resnet.hpp>
#include <taut/taut.hpp>

#include <memory>

#include "interleaved.hpp"
#include "operands.hpp"

using namespace taut;

namespace {

nn::ResNetOptions options_of(int network) {
  if (network == 0) return {.classes = 10, .stem = nn::Stem::cifar};
  if (network == 1) return {.classes = 10, .conv_bias = true};
  return {.classes = 10, .stem = nn::Stem::cifar, .blocks = {3, 3, 3}, .widths = {16, 32, 64}};
}

double seconds_in_operators(bool vision_only) {
  double total = 0;
  for (const auto& [name, entry] : profile_entries()) {
    const bool vision =
        name.rfind("conv2d", 0) == 0 || name.rfind("batch_", 0) == 0 || name.find("pool") != name.npos;
    if (vision || !vision_only) total += entry.seconds;
  }
  return total;
}

void train(benchmark::State& state, int network, std::int64_t batch) {
  using T = Profiled<CpuArray>;
  Rng rng{1};
  auto net = nn::ResNet<Grad<T>>::make(options_of(network), rng);
  std::unique_ptr<optim::Optimizer> optimizer;
  if (network == 2)
    optimizer = std::make_unique<optim::AdamW>(net, optim::AdamRule<true>{.lr = 1e-4});
  else
    optimizer = std::make_unique<optim::Sgd>(
        net, optim::SgdRule{.lr = 0.01, .momentum = 0.9, .weight_decay = network == 0 ? 5e-4 : 1e-4});
  const T x = CpuArray::normal({batch, 3, 32, 32}, 0, 1, rng);
  const auto labels = bench::random_labels(batch, 10, rng);
  float loss = 0;
  const auto step = [&] {
    Tape<T> tape;
    const auto result = cross_entropy(net(Grad<T>(x), Mode::train), labels);
    loss = result.item();
    tape.backward(result);
    optimizer->step();
  };
  step();
  const float first = loss;
  std::vector<double> seconds;
  double inside = 0, kernels = 0, whole = 0;
  std::int64_t conversions = 0;
  for (auto _ : state) {
    reset_profile();
    const auto before = cpu::conversions().count;
    seconds.push_back(bench::seconds_per_call(step, 1));
    conversions = cpu::conversions().count - before;
    state.SetIterationTime(seconds.back());
    inside += seconds_in_operators(false), kernels += seconds_in_operators(true), whole += seconds.back();
  }
  if (!(loss < first)) state.SkipWithError("the loss did not fall");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["images/s"] = static_cast<double>(batch) / bench::median(seconds);
  state.counters["inside"] = inside / whole;
  state.counters["kernels"] = kernels / whole;
  state.counters["conversions"] = static_cast<double>(conversions);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  std::string report = profile_report();
  state.SetLabel(report.insert(0, 1, '\n'));
}

/// Inference with normalisation folded into the convolutions, against the network as it was trained:
/// `speedup` is a median over rounds that run both in turn.
void folded(benchmark::State& state) {
  Rng rng{1};
  const auto net = nn::ResNet<CpuArray>::make(options_of(0), rng), less = nn::fold_batch_norm(net);
  const std::int64_t batch = 32;
  const auto x = CpuArray::normal({batch, 3, 32, 32}, 0, 1, rng);
  for (auto _ : state) {
    const auto rounds = bench::run_in_turn({[&] { benchmark::DoNotOptimize(net(x, Mode::eval)); },
                                            [&] { benchmark::DoNotOptimize(less(x, Mode::eval)); }},
                                           1, 9);
    state.counters["speedup"] = bench::median_ratio(rounds, 0, 1);
    state.counters["images/s"] = static_cast<double>(batch) / bench::median(rounds[1]);
  }
}

void cifar(benchmark::State& state) { train(state, 0, 128); }
void seed(benchmark::State& state) { train(state, 1, 128); }
void frost(benchmark::State& state) { train(state, 2, 32); }

}  // namespace

BENCHMARK(folded)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(frost)->Iterations(20)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(seed)->Iterations(10)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(cifar)->Iterations(7)->UseManualTime()->Unit(benchmark::kMillisecond);
