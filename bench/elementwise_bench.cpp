// Elementwise kernels against plain loops over the same buffers, which the compiler vectorises. `ratio` is
// the kernel's time by the loop's, a median over rounds that run both in turn; `GB/s` counts each operand and
// the result once.

#include <benchmark/benchmark.h>

#include <taut/taut.hpp>

#include "interleaved.hpp"

using namespace taut;

namespace {

/// Does what the kernel has to do at least: takes a buffer for the result, and runs `loop` over the elements
/// on one thread or on several.
template <class Loop> CpuArray plain(const CpuArray& a, const CpuArray& b, const Loop& loop) {
  auto out = CpuArray::uninitialized(a.shape());
  float* const __restrict to = out.mutable_data();
  const float *x = a.data(), *y = b.data();
  cpu::parallel_for(a.shape().size(), cpu::default_grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = loop(x[i], y[i]);
  });
  return out;
}

template <class Kernel, class Loop>
void compare(benchmark::State& state, const Kernel& kernel, const Loop& loop, int operands) {
  Rng rng(1);
  const auto n = state.range(0);
  const auto a = CpuArray::normal({n}, 0, 1, rng), b = CpuArray::normal({n}, 3, 0.1f, rng);
  const int calls = static_cast<int>(std::max<std::int64_t>(3, (1 << 22) / n));
  double ratio = 0, seconds = 0;
  for (auto _ : state) {
    const auto rounds = bench::run_in_turn({[&] { benchmark::DoNotOptimize(kernel(a, b)); },
                                            [&] { benchmark::DoNotOptimize(plain(a, b, loop)); }},
                                           calls);
    ratio = bench::median_ratio(rounds, 0, 1);
    seconds = bench::median(rounds[0]);
  }
  state.counters["ratio"] = ratio;
  state.counters["us"] = 1e6 * seconds;
  state.counters["GB/s"] = 1e-9 * static_cast<double>(n * (operands + 1) * 4) / seconds;
}

void add(benchmark::State& state) {
  compare(
      state, [](const auto& a, const auto& b) { return a + b; }, [](float a, float b) { return a + b; }, 2);
}
void scale(benchmark::State& state) {
  compare(
      state, [](const auto& a, const auto&) { return a * 2.5f; }, [](float a, float) { return a * 2.5f; }, 1);
}
void relu_(benchmark::State& state) {
  compare(
      state, [](const auto& a, const auto&) { return relu(a); },
      [](float a, float) { return a <= 0 ? 0 : a; }, 1);
}
void divide(benchmark::State& state) {
  compare(
      state, [](const auto& a, const auto& b) { return a / b; }, [](float a, float b) { return a / b; }, 2);
}
void square_root(benchmark::State& state) {
  compare(
      state, [](const auto&, const auto& b) { return sqrt(b); },
      [](float, float b) { return __builtin_sqrtf(b); }, 1);
}

}  // namespace

#define SIZES \
  ->Arg(1 << 10)->Arg(1 << 14)->Arg(1 << 18)->Arg(1 << 22)->Iterations(1)->Unit(benchmark::kMillisecond)
BENCHMARK(add) SIZES;
BENCHMARK(scale) SIZES;
BENCHMARK(relu_) SIZES;
BENCHMARK(divide) SIZES;
BENCHMARK(square_root) SIZES;
