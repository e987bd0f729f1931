#pragma once
// Threads of the CPU backend: how many there are, and one loop that spreads over them. OpenMP provides them
// when the program is compiled with it; otherwise everything runs on the calling thread.

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

#include "../core/error.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taut {

namespace detail {
/// What `set_threads` asked for; 0 until it is called.
inline std::atomic<int> requested_threads{0};
}  // namespace detail

/// The number of threads that CPU kernels use: what `set_threads` fixed, else OpenMP's own choice for the
/// calling thread (one a core, or `OMP_NUM_THREADS`). Always 1 in a program compiled without OpenMP.
inline int threads() {
#ifdef _OPENMP
  const int requested = detail::requested_threads.load(std::memory_order_relaxed);
  return requested > 0 ? requested : omp_get_max_threads();
#else
  return 1;
#endif
}

/// Fixes the number of threads of CPU kernels, oneDNN's included, for every thread of the program.
/// Throws `Error` unless 1 <= n <= 1024. Without OpenMP the number stays 1.
inline void set_threads(int n) {
  constexpr int most = 1024;  // the runtime does not survive numbers that its stacks have no memory for
  if (n < 1 || n > most)
    throw Error("set_threads: expected 1 to " + std::to_string(most) + " threads, got " + std::to_string(n) +
                "; pass 1 to run serially");
  detail::requested_threads.store(n, std::memory_order_relaxed);
}

namespace cpu {

/// The grain of elementwise loops, in elements. On two cores a parallel region costs about 1 us (its threads
/// still spinning from the last one), as long as one core takes to add 2^13 cached floats; two threads are
/// faster from about 2^15 on.
inline constexpr std::int64_t default_grain = std::int64_t{1} << 15;

/// Tells OpenMP's runtime, for the calling thread, the number that `set_threads` fixed. Libraries that open
/// parallel regions of their own (oneDNN) read it there; call this before calling them.
inline void apply_threads() {
#ifdef _OPENMP
  const int n = threads();
  if (omp_get_max_threads() != n) omp_set_num_threads(n);
#endif
}

#ifdef _OPENMP
namespace detail {

/// A loop's body with its type erased, so that what runs it is compiled once.
struct LoopBody {
  void* body;
  void (*call)(void* body, std::int64_t begin, std::int64_t end);
};

inline void run_parallel(std::int64_t n, std::int64_t grain, LoopBody loop) {
  const std::int64_t wanted = n / grain + (n % grain != 0);
  const std::int64_t parts = wanted < threads() ? wanted : threads();
  const std::int64_t align = grain < 64 ? 1 : 64;
  const std::int64_t chunk = ((n + parts - 1) / parts + align - 1) / align * align;
  if (chunk >= n || omp_in_parallel()) return loop.call(loop.body, 0, n);
  std::exception_ptr failure;
  std::int64_t failed_part = parts;
#pragma omp parallel num_threads(static_cast <int>(parts))
  // The runtime may grant fewer threads than asked for: a thread then takes several chunks.
  for (std::int64_t part = omp_get_thread_num(); part * chunk < n; part += omp_get_num_threads()) {
    const std::int64_t begin = part * chunk;
    try {
      loop.call(loop.body, begin, n - begin < chunk ? n : begin + chunk);
    } catch (...) {
#pragma omp critical(taut_parallel_for)
      if (part < failed_part) {
        failed_part = part;
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail
#endif

/// Calls `body(begin, end)` over a partition of [0, n) into contiguous chunks, at most one a thread, with a
/// second one only where there are more than `grain` items. The partition depends on n, grain and `threads()`
/// only. Serial when n <= grain, on one thread and inside another parallel region. Where `grain` is 64 or
/// more, chunks start at multiples of 64 items, so that no two threads write to one cache line. An exception
/// thrown by `body` is re-thrown here after all chunks have ended; of several, the one of the first chunk.
template <class F> void parallel_for(std::int64_t n, [[maybe_unused]] std::int64_t grain, const F& body) {
  if (n <= 0) return;
#ifdef _OPENMP
  if (n <= grain) return body(std::int64_t{0}, n);
  const auto call = [](void* f, std::int64_t begin, std::int64_t end) {
    (*static_cast<const F*>(f))(begin, end);
  };
  detail::run_parallel(n, grain < 1 ? 1 : grain, {const_cast<F*>(&body), call});
#else
  body(std::int64_t{0}, n);
#endif
}

/// Calls work(row) for each of `rows` rows of n elements, at least one, that take some operations each.
template <class Work> void for_each_row(std::int64_t rows, std::int64_t n, const Work& work) {
  const std::int64_t grain = default_grain / (8 * n);
  parallel_for(rows, grain < 1 ? 1 : grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) work(row);
  });
}

}  // namespace cpu
}  // namespace taut
