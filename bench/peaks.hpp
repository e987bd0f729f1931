#pragma once
// What this machine reaches at most, measured in the process whose kernels are held against it: fused
// multiply-adds in registers, and streams through the caches and the memory.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>

#include <taut/cpu/array.hpp>
#include <taut/cpu/gemm_portable.hpp>

namespace bench {

using Vector = taut::cpu::blocked::Vector<float>;
inline constexpr std::int64_t lanes = taut::cpu::blocked::Sizes<float>::lanes;

/// Calls work(part) for each part below `threads`, one a thread, and returns the least seconds that takes: of
/// a twentieth of a second of runs, in which the machine's other guests leave a gap.
template <class Work> double fastest_run(int threads, const Work& work) {
  using Clock = std::chrono::steady_clock;
  const int before = taut::threads();
  taut::set_threads(threads);
  double best = 1e300;
  const auto first = Clock::now();
  for (int run = 0; run < 5 || Clock::now() - first < std::chrono::milliseconds(50); ++run) {
    const auto start = Clock::now();
    taut::cpu::parallel_for(threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto part = begin; part < end; ++part) work(part);
    });
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  taut::set_threads(before);
  return best;
}

/// Runs `steps` rounds of independent chains of multiply-adds and returns what comes out. A function of its
/// own, so that the sums stay in registers wherever it is called from.
template <int chains> [[gnu::noinline]] float multiply_add(std::int64_t steps, float start) {
  Vector sum[chains] = {}, factor = Vector{} + 0.999f, term = Vector{} + start;
#pragma GCC unroll 10
  for (int i = 0; i < chains; ++i) sum[i] += static_cast<float>(i);
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 10
    for (int i = 0; i < chains; ++i) {
      sum[i] = sum[i] * factor + term;
#ifdef __x86_64__
      asm volatile("" : "+v"(sum[i]));  // keeps the compiler from merging chains
#endif
    }
  }
#pragma GCC unroll 10
  for (int i = 1; i < chains; ++i) sum[0] += sum[i];
  return sum[0][0];
}

/// Floating-point operations per second in float on `threads` threads: the best of many short runs, with
/// vectors as wide as the program was compiled for. Measured anew at each call.
inline double measure_fma_peak(int threads) {
  constexpr std::int64_t steps = 20000;
  constexpr int chains = 10;  // the latency of 4 cycles times two units need 8
  const double seconds = fastest_run(threads, [](std::int64_t part) {
    volatile float sink = multiply_add<chains>(steps, static_cast<float>(part + 1));
    static_cast<void>(sink);
  });
  return 2.0 * static_cast<double>(threads * steps * chains * lanes) / seconds;
}

/// What passes through memory: the triad a = b + s c, two streams read and one written, as in STREAM
/// (McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", 1995); the same
/// in place, a = a + s c; or one stream that is read and added up.
enum class Stream { triad, update, read };

[[gnu::noinline]] inline void run_triad(std::int64_t n, float* a, const float* b, const float* c) {
  using taut::cpu::blocked::load, taut::cpu::blocked::store;
  for (std::int64_t i = 0; i < n; i += 2 * lanes) {
    store<float>(a + i, load<float>(b + i) + 3.0f * load<float>(c + i));
    store<float>(a + i + lanes, load<float>(b + i + lanes) + 3.0f * load<float>(c + i + lanes));
  }
}

[[gnu::noinline]] inline float run_read(std::int64_t n, const float* a) {
  constexpr int sums = 8;
  Vector sum[sums] = {};
  for (std::int64_t i = 0; i < n; i += sums * lanes) {
#pragma GCC unroll 8
    for (int k = 0; k < sums; ++k) sum[k] += taut::cpu::blocked::load<float>(a + i + k * lanes);
  }
#pragma GCC unroll 8
  for (int k = 1; k < sums; ++k) sum[0] += sum[k];
  return sum[0][0];
}

/// Bytes per second of a stream over buffers of `footprint` bytes in all, of which each thread has a part of
/// its own: the best of several runs. What is read and written counts, and not that a processor may read a
/// line before it is written (write-allocate), which adds a third to what the triad moves.
inline double measure_bandwidth(int threads, Stream stream, double footprint) {
  const int arrays = stream == Stream::triad ? 3 : stream == Stream::update ? 2 : 1;
  // Parts are multiples of what the loops do in a round.
  const std::int64_t unit = 8 * lanes;
  const auto units = static_cast<std::int64_t>(footprint) / (4 * arrays * threads * unit);
  const auto part = std::max<std::int64_t>(1, units) * unit, n = part * threads;
  const double bytes = static_cast<double>(4 * n * (stream == Stream::read ? 1 : 3));
  const int repeats = static_cast<int>(std::max(1.0, 3e7 / bytes));
  using taut::CpuArray;
  CpuArray a = CpuArray::full({n}, 1.0f);
  const CpuArray b = CpuArray::full({arrays == 3 ? n : 0}, 2.0f),
                 c = CpuArray::full({arrays > 1 ? n : 0}, 0.5f);
  float* const to = a.mutable_data();
  const float *const from = arrays == 3 ? b.data() : to, *const scaled = c.data();
  const double seconds = fastest_run(threads, [&](std::int64_t index) {
    const auto at = index * part;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      if (stream != Stream::read) {
        run_triad(part, to + at, from + at, scaled + at);
      } else {
        volatile float sink = run_read(part, to + at);
        static_cast<void>(sink);
      }
    }
  });
  return bytes * repeats / seconds;
}

/// A footprint for which caches are no help: four times the last one, where that is known.
inline double memory_footprint() {
  double cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = static_cast<double>(std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L));
#endif
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE));
  return std::min(4 * std::max(cache, 64e6), memory / 4);
}

/// The value of `measure` for a key, measured at its first use.
template <class Key, class Measure> double measured_once(const Key& key, const Measure& measure) {
  static std::map<Key, double> values;
  const auto found = values.find(key);
  return found != values.end() ? found->second : values[key] = measure();
}

/// `measure_fma_peak`, once for each number of threads.
inline double fma_peak(int threads) {
  return measured_once(threads, [&] { return measure_fma_peak(threads); });
}

/// `measure_bandwidth`, once for each number of threads, stream and footprint, but for a sixteenth of it: so
/// small buffers are held against the caches that they fit into.
inline double bandwidth(int threads, Stream stream, double footprint) {
  int exponent = 0;
  const double mantissa = std::frexp(std::clamp(footprint, 4e3, memory_footprint()), &exponent);
  const double size = std::ldexp(std::round(16 * mantissa) / 16, exponent);
  return measured_once(std::tuple(threads, stream, size),
                       [&] { return measure_bandwidth(threads, stream, size); });
}

/// The triad's bandwidth out of main memory.
inline double memory_bandwidth(int threads) { return bandwidth(threads, Stream::triad, memory_footprint()); }

}  // namespace bench
