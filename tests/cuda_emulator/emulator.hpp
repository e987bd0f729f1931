#pragma once
// CUDA kernels on the CPU. This header gives C++ the vocabulary that kernels are written in, so that the same
// source compiles with g++ or clang++; emulator.cpp runs their threads. One thread of a kernel is one fiber,
// which runs until it must wait for others; all are run by the host's thread that launches, or that waits for
// a late stream, one launch at a time.
//
// Kernels are run to be tested, so the emulator is strict. It aborts, saying why, where a barrier is reached
// by a part of the block only or at different places, where lanes disagree about a warp's exchange or read a
// lane that takes no part, and where no thread can go on. Threads and blocks run in an order of choice:
// forward, reverse or shuffled (`TAUT_EMULATOR_ORDER`), since what depends on the order lacks a barrier.
// Shared memory holds NaN at first, dynamic shared memory has exactly the size asked for, and a launch that a
// device would refuse is refused with the same code.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <taut/core/sanitizer.hpp>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __grid_constant__

// All blocks use the same variables, one after the other. They lie in a section of their own, so that the
// emulator can fill them, but not under AddressSanitizer, which sees overruns only of ordinary variables.
#if TAUT_ADDRESS_SANITIZER
#define __shared__ static
#else
#define __shared__ static __attribute__((section("taut_shared")))
#endif

struct uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline uint3 threadIdx{}, blockIdx{};
inline dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace emulator {

/// In which order threads run that need not wait for each other, and the blocks of a grid.
enum class Order { forward, reverse, shuffled };

/// The order at first is what the environment variable TAUT_EMULATOR_ORDER says, or forward.
void set_order(Order order);
Order order();

/// Codes that launches return, as the device's.
enum Code { success = 0, invalid_value = 1, invalid_configuration = 9 };

/// What a code means, in the device's words.
constexpr const char* meaning(int code) {
  return code == invalid_configuration ? "invalid configuration argument"
         : code == invalid_value       ? "invalid argument"
                                       : "no error";
}

/// What is put into a stream, of which nothing is known but its address.
using Work = std::function<void()>;

/// Runs work at once, unless its stream is late, or keeps it while the stream is being captured.
void submit(const void* stream, Work work);

/// Which streams are late: what is put into them runs only once somebody waits for it, so that whoever should
/// have waited, and has not, comes too early or is overtaken.
enum class Late { none, first, others };

/// At first this is what the environment variable TAUT_EMULATOR_LATE says, or none. `first` is the stream
/// that is used before all others.
void set_late(Late late);
bool any_late();

/// A place in a stream, after all that has been put into it so far.
struct Mark {
  const void* stream = nullptr;
  std::size_t position = 0;
};

Mark mark(const void* stream);
bool has_passed(const Mark& mark);
void run_until(const Mark& mark);

/// What is put into the stream from now on is kept, until `end_capture` gives it.
void begin_capture(const void* stream);
std::vector<Work> end_capture(const void* stream);
bool is_capturing(const void* stream);

/// Has `thread` run for every thread of a grid, unless a device would not.
Code launch(dim3 grid, dim3 block, std::size_t shared_bytes, const void* stream, Work thread);

/// The dynamic shared memory of the block that runs.
void* dynamic_shared();

/// Waits for all threads of the block.
void block_barrier(const std::source_location& where);

/// What the lanes of a warp have brought to an exchange: up to 16 bytes each.
struct Exchanged {
  alignas(16) std::byte of_lane[32][16];
};

/// Waits for the lanes of the warp that `mask` names, and exchanges `bytes` bytes at `value` with them.
const Exchanged& exchange(unsigned mask, const void* value, std::size_t bytes,
                          const std::source_location& where);

/// The position of the running thread in its warp.
unsigned lane();

/// Ends the program with a message about the running thread.
[[noreturn]] void fail(const char* message, const std::source_location& where);

/// A value that lane `source` has, among those of `mask`.
template <class T>
T shuffle(unsigned mask, const T& value, unsigned source, const std::source_location& where) {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
  const Exchanged& all = exchange(mask, &value, sizeof(T), where);
  if ((mask >> source & 1) == 0) fail("a shuffle reads a lane that its mask does not name", where);
  T result;
  std::memcpy(&result, all.of_lane[source], sizeof(T));
  return result;
}

}  // namespace emulator

// Barriers and warp primitives. The place of the call is a default argument: it is the caller's.

using TautPlace = std::source_location;

inline void __syncthreads(const TautPlace& where = TautPlace::current()) { emulator::block_barrier(where); }

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, const TautPlace& where = TautPlace::current()) {
  emulator::exchange(mask, nullptr, 0, where);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              const TautPlace& where = TautPlace::current()) {
  const unsigned within = static_cast<unsigned>(width) - 1;
  return emulator::shuffle(mask, value,
                           (emulator::lane() & ~within) | (static_cast<unsigned>(source) & within), where);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize,
                  const TautPlace& where = TautPlace::current()) {
  const unsigned own = emulator::lane(), source = own ^ static_cast<unsigned>(lanes);
  const bool beyond = source > (own | (static_cast<unsigned>(width) - 1));
  return emulator::shuffle(mask, value, beyond ? own : source, where);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = warpSize,
                   const TautPlace& where = TautPlace::current()) {
  const unsigned own = emulator::lane();
  const bool beyond = own + lanes > (own | (static_cast<unsigned>(width) - 1));
  return emulator::shuffle(mask, value, beyond ? own : own + lanes, where);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = warpSize,
                 const TautPlace& where = TautPlace::current()) {
  const unsigned own = emulator::lane();
  const bool beyond = (own & (static_cast<unsigned>(width) - 1)) < lanes;
  return emulator::shuffle(mask, value, beyond ? own : own - lanes, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, const TautPlace& where = TautPlace::current()) {
  const bool own = predicate != 0;
  const emulator::Exchanged& all = emulator::exchange(mask, &own, sizeof own, where);
  unsigned lanes = 0;
  for (unsigned i = 0; i < 32; ++i)
    if ((mask >> i & 1) != 0 && all.of_lane[i][0] != std::byte{0}) lanes |= 1u << i;
  return lanes;
}

inline int __any_sync(unsigned mask, int predicate, const TautPlace& where = TautPlace::current()) {
  return __ballot_sync(mask, predicate, where) != 0;
}

inline int __all_sync(unsigned mask, int predicate, const TautPlace& where = TautPlace::current()) {
  return __ballot_sync(mask, predicate, where) == mask;
}

// Atomic operations and fences: threads take turns only where they wait, so that ordinary ones do.

template <class T> T atomicExch(T* at, std::type_identity_t<T> value) {
  const T old = *at;
  *at = value;
  return old;
}
template <class T> T atomicAdd(T* at, std::type_identity_t<T> value) { return atomicExch(at, *at + value); }
template <class T> T atomicMax(T* at, std::type_identity_t<T> value) {
  return atomicExch(at, *at < value ? value : *at);
}
template <class T> T atomicMin(T* at, std::type_identity_t<T> value) {
  return atomicExch(at, value < *at ? value : *at);
}
template <class T> T atomicOr(T* at, std::type_identity_t<T> value) { return atomicExch(at, *at | value); }
template <class T> T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return atomicExch(at, *at == expected ? value : *at);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Functions that devices have and <cmath> has not.

template <class T> T __ldg(const T* at) { return *at; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(std::uint64_t{x} * std::uint64_t{y} >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(Wide{x} * Wide{y} >> 64);
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
