#pragma once
// How kernels are launched, and where their dynamic shared memory is: the only places where nvcc and the
// emulator, which runs kernels on the CPU (tests/cuda_emulator), differ. Kernels use nothing that is not
// here, in block.cuh or in vector.cuh, but CUDA's own vocabulary (`threadIdx`, `__syncthreads`,
// `__shfl_xor_sync`…), which the emulator has too.
//
// Kernels and the functions they call that have static shared memory must be of internal linkage (an unnamed
// namespace, or `static`): only then can AddressSanitizer see overruns of that memory.

#include <taut/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "emulator.hpp"
#endif

namespace taut::cuda {

/// The threads that kernels are launched with a block of where there is no reason for another number.
inline constexpr int block_threads = 256;

/// The most dynamic shared memory, in bytes, that a block has on every device.
inline constexpr std::size_t most_shared_bytes = 48 * 1024;

/// The dynamic shared memory of the block, aligned to 16 bytes. It holds no defined values at first.
template <class T> __device__ T* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char taut_dynamic_shared[];
  return reinterpret_cast<T*>(taut_dynamic_shared);
#else
  return static_cast<T*>(emulator::dynamic_shared());
#endif
}

namespace detail {
/// Throws what the device says of a launch that it refused. Its error is taken back, so that later calls do
/// not report it.
[[noreturn, gnu::cold]] inline void launch_error(int code) {
#ifdef __CUDACC__
  (void)cudaGetLastError();
  const char* const meaning = cudaGetErrorString(static_cast<cudaError_t>(code));
#else
  const char* const meaning = emulator::meaning(code);
#endif
  throw DeviceError("launch of a kernel", code, std::string("cuda: ") + meaning);
}
}  // namespace detail

/// Starts a kernel on a stream (a `cudaStream_t`), with `shared_bytes` of dynamic shared memory a block.
/// Throws `DeviceError` where the device refuses the configuration, an empty grid among others: launchers
/// return early when there is nothing to do.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, void* stream,
            Arguments... arguments) {
#ifdef __CUDACC__
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  const int code = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
#else
  const int code = emulator::launch(grid, block, shared_bytes, stream,
                                    [=] { kernel(static_cast<Parameters>(arguments)...); });
#endif
  if (code != 0) detail::launch_error(code);
}

/// How many blocks of `each` cover `count` elements: for kernels that do not stride over the grid.
constexpr unsigned blocks_covering(std::int64_t count, std::int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

/// As many, but not more than `most`, beyond which kernels that stride over the grid gain nothing.
constexpr unsigned blocks_for(std::int64_t count, std::int64_t each, std::int64_t most = 1 << 16) {
  return (count + each - 1) / each < most ? blocks_covering(count, each) : static_cast<unsigned>(most);
}

/// The thread's position among all threads of a grid of one dimension, and the number of them: where a loop
/// over the grid begins, and its step.
__device__ inline std::int64_t grid_thread() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t grid_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

}  // namespace taut::cuda
