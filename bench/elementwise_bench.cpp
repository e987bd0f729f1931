// Elementwise kernels, broadcasts and partial derivatives, over buffers that fit into the first cache and
// over ones that are larger than the second. `ratio` is the kernel's time by that of a plain loop over the
// same buffers, which the compiler vectorises but for exp, tanh and erf: a median over rounds that run both
// in turn. `GB/s` counts each operand and the result once; `limit` is what a triad over as many bytes
// reaches, and `of_peak` the share of it. Arithmetic does not count, so transcendental functions stay below 1
// where their operands are in cache. Partial derivatives are called as a tape does: the gradient stands in
// for operands that they do not depend on. Operands of 2^10 elements show what a call costs by itself.

#include <taut/taut.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "report.hpp"

using namespace taut;

namespace {

/// The operands: a and c around 0, b positive.
struct Operands {
  CpuArray a, b, c;

  static Operands make(const Shape& shape) {
    Rng rng(1);
    return {CpuArray::normal(shape, 0, 1, rng), CpuArray::normal(shape, 3, 0.1f, rng),
            CpuArray::normal(shape, 0, 1, rng)};
  }
};

using Compute = std::function<CpuArray()>;

void compare(benchmark::State& state, const bench::Work& work, const Compute& kernel, const Compute& loop) {
  const int calls = static_cast<int>(std::max(1.0, 1.6e7 / work.bytes()));
  bench::Rounds rounds;
  for (auto _ : state) {
    rounds = bench::run_in_turn(
        {[&] { benchmark::DoNotOptimize(kernel()); }, [&] { benchmark::DoNotOptimize(loop()); }}, calls);
    state.SetIterationTime(std::ranges::min(rounds[0]));
  }
  bench::report(state, work, std::ranges::min(rounds[0]));
  state.counters["ratio"] = bench::median_ratio(rounds, 0, 1);
  const CpuArray result = kernel(), expected = loop();
  bench::check(state,
               bench::varied(result.span()) &&
                   std::ranges::equal(result.span(), expected.span(),
                                      [](float x, float y) { return bench::near(x, y, 1e-5); }),
               "the kernel's result is not the loop's");
}

/// Does what the kernel has to do at least: takes a buffer for the result, and runs `loop` over the elements
/// on one thread or on several.
template <class Loop> CpuArray plain(const Operands& x, const Loop& loop) {
  auto out = CpuArray::uninitialized(x.a.shape());
  float* const __restrict to = out.mutable_data();
  const float *a = x.a.data(), *b = x.b.data(), *c = x.c.data();
  cpu::parallel_for(x.a.shape().size(), cpu::default_grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = loop(a[i], b[i], c[i]);
  });
  return out;
}

constexpr std::int64_t sizes[] = {1 << 10, 1 << 14, 1 << 18, 1 << 22};

/// Adds a function of so many of the operands.
template <class Kernel, class Loop>
void add(const std::string& name, int operands, const Kernel& kernel, const Loop& loop) {
  for (const auto n : sizes)
    bench::add(name + "/" + std::to_string(n), [=](benchmark::State& state) {
      const Operands x = Operands::make({n});
      compare(
          state, bench::moving(static_cast<double>(n * operands), static_cast<double>(n)),
          [&] { return kernel(x.a, x.b, x.c); }, [&] { return plain(x, loop); });
    });
}

/// Adds x + y for x [rows, 128] and y of a row (a bias) or of a column.
void add_broadcast(const std::string& name, bool row) {
  constexpr std::int64_t width = 128;
  for (const auto n : sizes)
    bench::add(name + "/" + std::to_string(n), [=](benchmark::State& state) {
      Rng rng(1);
      const auto x = CpuArray::normal({n / width, width}, 0, 1, rng);
      const auto y = CpuArray::normal(row ? Shape{width} : Shape{n / width, 1}, 0, 1, rng);
      const auto loop = [&] {
        auto out = CpuArray::uninitialized(x.shape());
        float* const __restrict to = out.mutable_data();
        const float *from = x.data(), *other = y.data();
        cpu::parallel_for(n / width, cpu::default_grain / width, [=](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t j = 0; j < width; ++j)
              to[i * width + j] = from[i * width + j] + other[row ? j : i];
        });
        return out;
      };
      compare(
          state, bench::moving(static_cast<double>(n + y.shape().size()), static_cast<double>(n)),
          [&] { return x + y; }, loop);
    });
}

float normal_distribution(float x) { return 0.5f * (1 + std::erf(x * 0.70710678f)); }

const bool registered = [] {
  using A = const CpuArray&;
  add(
      "add", 2, [](A a, A b, A) { return a + b; }, [](float a, float b, float) { return a + b; });
  add(
      "scale", 1, [](A a, A, A) { return a * 2.5f; }, [](float a, float, float) { return a * 2.5f; });
  add(
      "relu", 1, [](A a, A, A) { return relu(a); }, [](float a, float, float) { return a <= 0 ? 0 : a; });
  add(
      "divide", 2, [](A a, A b, A) { return a / b; }, [](float a, float b, float) { return a / b; });
  add(
      "sqrt", 1, [](A, A b, A) { return sqrt(b); }, [](float, float b, float) { return std::sqrt(b); });
  add(
      "exp", 1, [](A a, A, A) { return exp(a); }, [](float a, float, float) { return std::exp(a); });
  add(
      "tanh", 1, [](A a, A, A) { return tanh(a); }, [](float a, float, float) { return std::tanh(a); });
  add(
      "gelu", 1, [](A a, A, A) { return gelu(a); },
      [](float a, float, float) { return a * normal_distribution(a); });
  add_broadcast("add_row", true);
  add_broadcast("add_column", false);
  add(
      "partial/multiply", 2, [](A a, A, A c) { return eval(op::Partial<op::Mul, 0>{}, a, a, c); },
      [](float a, float, float c) { return a * c; });
  add(
      "partial/divide", 3, [](A a, A b, A c) { return eval(op::Partial<op::Div, 1>{}, a, c, b); },
      [](float a, float b, float c) { return -a * c / (b * b); });
  add(
      "partial/relu", 2, [](A a, A, A c) { return eval(op::PartialFromOutput<op::Relu>{}, a, c); },
      [](float a, float, float c) { return c <= 0 ? 0 : a; });
  add(
      "partial/tanh", 2, [](A a, A, A c) { return eval(op::PartialFromOutput<op::Tanh>{}, a, c); },
      [](float a, float, float c) { return a * (1 - c * c); });
  add(
      "partial/gelu", 2, [](A a, A, A c) { return eval(op::Partial<op::Gelu, 0>{}, a, c); },
      [](float a, float, float c) {
        return a * (normal_distribution(c) + c * 0.39894228f * std::exp(-0.5f * c * c));
      });
  return true;
}();

}  // namespace
