// Matrix products: `cpu::gemm` against its portable kernel and against oneDNN's matmul primitive called
// directly, with memory objects made once. All three run in turn within each round, so that they meet the
// same machine. `GFLOP/s` of gemm, `portable` and `direct` are of the fastest round (the median also measures
// the machine's other guests); `of_direct` is the median over rounds of gemm's speed relative to the direct
// call's, `of_peak` gemm's share of `limit`, which is the peak of fused multiply-adds, or less where the
// operands come more slowly. Without oneDNN `direct` is the portable kernel.

#include <benchmark/benchmark.h>
#include <taut/cpu/array.hpp>
#include <taut/cpu/gemm.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "report.hpp"

namespace {

using taut::cpu::Gemm;

struct Operands {
  std::vector<float> a, b, bias, c;

  explicit Operands(const Gemm& g)
      : a(random(g.m * g.k)), b(random(g.k * g.n)), bias(random(g.n)), c(std::size_t(g.m * g.n)) {}

 private:
  static std::vector<float> random(std::int64_t n) {
    static taut::Rng rng{1};
    return taut::CpuArray::normal({n}, 0, 1, rng).to_host();
  }
};

#if TAUT_HAS_ONEDNN
/// oneDNN's matmul primitive on fixed operands: nothing but the call is left to do.
class Direct {
 public:
  Direct(const Gemm& g, const Operands& x, bool with_bias) {
    namespace onednn = taut::cpu::onednn;
    using D = onednn::Descriptor;
    const D a = g.transpose_a ? D({g.m, g.k}, {1, g.m}) : D({g.m, g.k}, {g.k, 1});
    const D b = g.transpose_b ? D({g.k, g.n}, {1, g.k}) : D({g.k, g.n}, {g.n, 1});
    const D c({g.m, g.n}, {g.n, 1}), bias = with_bias ? D({1, g.n}, {g.n, 1}) : D();
    primitive_ = onednn::make_primitive(onednn::matmul_descriptor(a, b, bias, c));
    add(DNNL_ARG_SRC, a, x.a.data());
    add(DNNL_ARG_WEIGHTS, b, x.b.data());
    add(DNNL_ARG_DST, c, x.c.data());
    if (with_bias) add(DNNL_ARG_BIAS, bias, x.bias.data());
  }

  void run() const {
    dnnl_primitive_execute(primitive_.get(), stream_, int(arguments_.size()), arguments_.data());
    dnnl_stream_wait(stream_);
  }

 private:
  void add(int name, const taut::cpu::onednn::Descriptor& descriptor, const float* data) {
    memory_.push_back(taut::cpu::onednn::make_memory(descriptor));
    taut::cpu::onednn::set_data(memory_.back(), data);
    arguments_.push_back({name, memory_.back().get()});
  }

  dnnl_stream_t stream_ = taut::cpu::onednn::Session::of_this_thread().stream.get();
  taut::cpu::onednn::Primitive primitive_;
  std::vector<taut::cpu::onednn::Memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;
};
#endif

void product(benchmark::State& state, const Gemm& g, bool with_bias) {
  Operands x(g);
  const float* const bias = with_bias ? x.bias.data() : nullptr;
  const std::function<void()> chosen = [&] { taut::cpu::gemm(g, x.a.data(), x.b.data(), bias, x.c.data()); };
  const std::function<void()> portable = [&] {
    taut::cpu::gemm_portable(g, x.a.data(), x.b.data(), bias, x.c.data());
  };
#if TAUT_HAS_ONEDNN
  const Direct primitive(g, x, with_bias);
  const std::function<void()> direct = [&] { primitive.run(); };
#else
  const std::function<void()> direct = portable;
#endif
  const double flops = 2.0 * double(g.m) * double(g.n) * double(g.k);
  const int calls = std::max(1, int(2e6 / flops)), rounds = flops > 1e9 ? 20 : 300;
  const bench::Rounds seconds = bench::run_in_turn({direct, portable, chosen}, calls, rounds);
  const auto best = [&](std::size_t variant) { return std::ranges::min(seconds[variant]); };
  for (auto _ : state) state.SetIterationTime(best(2));
  bench::report(
      state,
      {.flops = flops, .read = 4.0 * double(g.m * g.k + g.k * g.n), .written = 4.0 * double(g.m * g.n)},
      best(2));
  state.counters["direct"] = 1e-9 * flops / best(0);
  state.counters["portable"] = 1e-9 * flops / best(1);
  state.counters["of_direct"] = bench::median_ratio(seconds, 0, 2);
  const std::vector<float> last = x.c;
  portable();
  bench::check(
      state,
      bench::varied(last) &&
          std::ranges::equal(
              last, x.c, [&](float a, float b) { return std::abs(a - b) <= 1e-4 * std::sqrt(double(g.k)); }),
      "the product is not the portable kernel's");
}

struct Case {
  const char* name;
  Gemm g;
  bool bias = false;
};

/// The products of a 784-128-64-10 perceptron at batch 64 (forward, data gradient, weight gradient), and
/// squares.
const Case cases[] = {
    {"layer1/forward", {.m = 64, .n = 128, .k = 784, .transpose_b = true}, true},
    {"layer1/data", {.m = 64, .n = 784, .k = 128}},
    {"layer1/weight", {.m = 128, .n = 784, .k = 64, .transpose_a = true}},
    {"layer2/forward", {.m = 64, .n = 64, .k = 128, .transpose_b = true}, true},
    {"layer2/data", {.m = 64, .n = 128, .k = 64}},
    {"layer2/weight", {.m = 64, .n = 128, .k = 64, .transpose_a = true}},
    {"layer3/forward", {.m = 64, .n = 10, .k = 64, .transpose_b = true}, true},
    {"layer3/data", {.m = 64, .n = 64, .k = 10}},
    {"layer3/weight", {.m = 10, .n = 64, .k = 64, .transpose_a = true}},
    {"square256", {.m = 256, .n = 256, .k = 256}},
    {"square256/a_transposed", {.m = 256, .n = 256, .k = 256, .transpose_a = true}},
    {"square256/b_transposed", {.m = 256, .n = 256, .k = 256, .transpose_b = true}},
    {"square1024", {.m = 1024, .n = 1024, .k = 1024}},
};

const bool registered = [] {
  for (const Case& c : cases)
    bench::add(c.name, [&c](benchmark::State& state) { product(state, c.g, c.bias); });
  return true;
}();

}  // namespace
