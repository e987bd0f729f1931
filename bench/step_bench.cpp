// Training steps and inference of the published workloads on random data, on 1 thread and on all. GFLOP/s
// count the operations of the textbook's convolution, which Winograd's algorithm undercuts: `of_peak`, the
// share of the multiply-add peak that was measured in the same run, can exceed 1.

#include <benchmark/benchmark.h>
#include <taut/cpu/cpu.hpp>
#include <taut/interpret/profiled.hpp>

#include <cmath>
#include <set>
#include <string>

#include "interleaved.hpp"
#include "peaks.hpp"
#include "session.hpp"

using namespace taut;

namespace {

template <class T> std::unique_ptr<bench::Session> open(const bench::Workload& workload) {
  return bench::make_session<T>({workload, "", bench::draw_batches(workload, workload.batch, 4, Rng{1})});
}

/// The floating-point operations that `work` takes on `Profiled` values.
template <class Work> double count_flops_of(const Work& work) {
  reset_profile();
  work();
  double flops = 0;
  for (const auto& [name, entry] : profile_entries()) flops += static_cast<double>(entry.flops);
  return flops;
}

template <class Work>
void measure(benchmark::State& state, int threads, double flops, std::int64_t samples, const Work& work) {
  set_threads(threads);
  work();  // warm up
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(bench::seconds_per_call(work, 1));
    state.SetIterationTime(seconds.back());
  }
  const double rate = flops / bench::median(seconds);
  state.counters["samples/s"] = static_cast<double>(samples) / bench::median(seconds);
  state.counters["GFLOP/s"] = 1e-9 * rate;
  state.counters["of_peak"] = rate / bench::fma_peak(threads);
}

void train(benchmark::State& state, const bench::Workload& workload, int threads) {
  const double flops = [&] {
    const auto session = open<Profiled<CpuArray>>(workload);
    return count_flops_of([&] { session->train_step(); });
  }();
  const auto session = open<CpuArray>(workload);
  double loss = 0;
  const double first = session->train_step();
  measure(state, threads, flops, workload.batch, [&] { loss = session->train_step(); });
  if (!std::isfinite(loss) || loss == first) state.SkipWithError("the loss is not finite, or did not change");
}

void infer(benchmark::State& state, const bench::Workload& workload, int threads, std::int64_t samples) {
  const auto profiled = open<Profiled<CpuArray>>(workload);
  const double flops = count_flops_of([&] { profiled->infer(samples); });
  const auto session = open<CpuArray>(workload);
  measure(state, threads, flops, samples, [&] { session->infer(samples); });
  for (const double logit : session->logits())
    if (!std::isfinite(logit)) state.SkipWithError("a logit is not finite");
}

const bool registered = [] {
  for (const auto& workload : bench::workloads)
    for (const int threads : std::set{1, taut::threads()}) {
      const auto name = [&](const std::string& what) {
        return what + "/" + std::string(workload.name) + "/threads:" + std::to_string(threads);
      };
      benchmark::RegisterBenchmark(name("train").c_str(), train, workload, threads)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->MinTime(2);
      for (const std::int64_t samples : {1, 256})
        benchmark::RegisterBenchmark(name("infer:" + std::to_string(samples)).c_str(), infer, workload,
                                     threads, samples)
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
    }
  return true;
}();

}  // namespace
