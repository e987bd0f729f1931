#pragma once
// The rate of fused multiply-adds that this machine reaches in registers: the ceiling that kernels are held
// against.

#include <taut/cpu/gemm_portable.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace bench {

/// Runs `steps` rounds of independent chains of multiply-adds and returns what comes out. A function of its
/// own, so that the sums stay in registers wherever it is called from.
template <int chains> [[gnu::noinline]] float multiply_add(std::int64_t steps, float start) {
  using Vector = taut::cpu::blocked::Vector<float>;
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

/// Floating-point operations per second in float on `threads` threads: the best of several short runs, with
/// vectors as wide as the program was compiled for.
inline double fma_peak(int threads) {
  constexpr std::int64_t lanes = taut::cpu::blocked::Sizes<float>::lanes, steps = 20000;
  constexpr int chains = 10;  // the latency of 4 cycles times two units need 8
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    const auto start = std::chrono::steady_clock::now();
    taut::cpu::parallel_for(threads, 1, [&](std::int64_t begin, std::int64_t) {
      volatile float sink = multiply_add<chains>(steps, static_cast<float>(begin + 1));
      static_cast<void>(sink);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * double(threads * steps * chains * lanes) / seconds.count());
  }
  return best;
}

}  // namespace bench
