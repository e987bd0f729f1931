// How fast batches come, in samples a second: of MNIST's form from memory by 0 to 4 workers, alone and beside
// a consumer that is busy for a while with each batch, as a training step is; and how fast IDX files load.
//
// Alone, `workers:0` is what one core makes of it. Beside a busy consumer the ideal is that loading costs
// nothing: `waiting_us`, what a batch is waited for, should be near 0 with workers.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <taut/core/random.hpp>
#include <taut/data/data_loader.hpp>
#include <taut/data/idx.hpp>

namespace taut::data {
namespace {

using Clock = std::chrono::steady_clock;

// MNIST's sizes and its conversion to float, with random pixels.
class RandomImages {
 public:
  static constexpr std::int64_t count = 60000, pixels = 784;

  RandomImages() : bytes_(static_cast<std::size_t>(count * pixels)) {
    Rng rng{1};
    const auto random = rng.draw(bytes_.size());
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<std::uint8_t>(random.block(i / 16)[i % 4] >> (8 * (i / 4 % 4)));
    }
  }

  std::int64_t size() const { return count; }
  Shape sample_shape() const { return {1, 28, 28}; }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng&) const {
    const auto image = std::span(bytes_).subspan(static_cast<std::size_t>(index * pixels), pixels);
    std::ranges::transform(image, values.begin(),
                           [](std::uint8_t x) { return static_cast<float>(x) / 255.0f; });
    return index % 10;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

const RandomImages& random_images() {
  static const RandomImages images;
  return images;
}

// The batches of one epoch after another, as one endless sequence.
void load_batches(benchmark::State& state, std::chrono::microseconds step) {
  const std::int64_t batch_size = state.range(0);
  DataLoader loader{
      random_images(),
      {.batch_size = batch_size, .workers = static_cast<int>(state.range(1)), .drop_last = true}};
  auto batch = loader.begin();
  Clock::duration waiting{0};
  for (auto _ : state) {
    benchmark::DoNotOptimize(batch->values.data());
    const auto arrived = Clock::now();
    while (Clock::now() - arrived < step) {
    }
    const auto asked = Clock::now();
    if (++batch == std::default_sentinel) batch = loader.begin();
    waiting += Clock::now() - asked;
  }
  state.SetItemsProcessed(state.iterations() * batch_size);
  state.counters["waiting_us"] = benchmark::Counter(
      std::chrono::duration<double, std::micro>(waiting).count(), benchmark::Counter::kAvgIterations);
}

void loading_alone(benchmark::State& state) { load_batches(state, std::chrono::microseconds(0)); }
void loading_beside_a_step(benchmark::State& state) { load_batches(state, std::chrono::microseconds(500)); }

void arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "workers"})->UseRealTime();
  for (const std::int64_t workers : {0, 1, 2, 4}) benchmark->Args({64, workers});
  benchmark->Args({512, 2});
}

BENCHMARK(loading_alone)->Apply(arguments);
BENCHMARK(loading_beside_a_step)->Apply(arguments);

// The order of a new epoch, the threads and the first batch.
void start_of_an_epoch(benchmark::State& state) {
  DataLoader loader{random_images(), {.workers = static_cast<int>(state.range(0))}};
  for (auto _ : state) benchmark::DoNotOptimize(loader.begin()->values.data());
}
BENCHMARK(start_of_an_epoch)
    ->ArgName("workers")
    ->Arg(0)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void parsing_idx(benchmark::State& state) {
  std::vector<std::uint8_t> bytes{0, 0, 8, 3, 0, 0, 0xea, 0x60, 0, 0, 0, 28, 0, 0, 0, 28};
  bytes.resize(bytes.size() + 60000 * 784);
  for (auto _ : state) benchmark::DoNotOptimize(parse_idx(bytes, "memory").values.data());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(parsing_idx)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace taut::data
