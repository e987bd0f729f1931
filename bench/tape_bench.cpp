// What recording and playing back one operation costs over its kernels: a chain of operations on a tiny
// tensor with a tape, less the same forward and backward kernels called directly.

#include <benchmark/benchmark.h>

#include <taut/taut.hpp>

#include "interleaved.hpp"

using namespace taut;

namespace {

constexpr int length = 1000;

template <class F>
void chain(benchmark::State& state, const F& function, const std::function<void()>& kernels) {
  const auto x = Grad<CpuArray>(CpuArray::full({4}, 0.5f)).track();
  double overhead = 0, kernel = 0;
  for (auto _ : state) {
    const auto rounds = bench::run_in_turn({[&] {
                                              Tape<CpuArray> tape;
                                              auto y = x;
                                              for (int i = 0; i < length; ++i) y = function(y, x);
                                              tape.backward(y, CpuArray::ones({4}));
                                            },
                                            kernels},
                                           20);
    overhead = bench::median(rounds[0]) - bench::median(rounds[1]);
    kernel = bench::median(rounds[1]);
  }
  state.counters["overhead_ns"] = 1e9 * overhead / length;
  state.counters["kernels_ns"] = 1e9 * kernel / length;
}

void tanh_chain(benchmark::State& state) {
  const auto x = CpuArray::full({4}, 0.5f);
  chain(
      state, [](const auto& y, const auto&) { return tanh(y); },
      [&] {
        auto y = x, g = x;
        for (int i = 0; i < length; ++i) y = tanh(y);
        for (int i = 0; i < length; ++i) g = eval(op::PartialFromOutput<op::Tanh>{}, std::move(g), y);
        benchmark::DoNotOptimize(g);
      });
}

void add_chain(benchmark::State& state) {
  const auto x = CpuArray::full({4}, 0.5f);
  chain(
      state, [](const auto& y, const auto& z) { return y + z; },
      [&] {
        auto y = x, g = x;
        for (int i = 0; i < length; ++i) y = y + x;
        for (int i = 0; i < length; ++i) g = std::move(g) + x;  // the leaf's contributions add up
        benchmark::DoNotOptimize(g);
      });
}

void mul_chain(benchmark::State& state) {
  const auto x = CpuArray::full({4}, 0.5f);
  chain(
      state, [](const auto& y, const auto& z) { return y * z; },
      [&] {
        auto y = x, g = x, sum = x;
        for (int i = 0; i < length; ++i) y = y * x;
        for (int i = 0; i < length; ++i) {
          const auto h = eval(op::Partial<op::Mul, 0>{}, g, y, x);
          sum = std::move(sum) + eval(op::Partial<op::Mul, 1>{}, std::move(g), y, x);
          g = h;
        }
        benchmark::DoNotOptimize(sum);
      });
}

}  // namespace

BENCHMARK(tanh_chain)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(add_chain)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(mul_chain)->Iterations(1)->Unit(benchmark::kMillisecond);
