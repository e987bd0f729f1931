#pragma once
// Where an example computes: `--device cpu` or `--device cuda`. Programs are written over any tensor type,
// and are compiled once for each device that Taut was built for.
//
//     with_device(options.device, [&]<class T>() { run<T>(options); });

#include <taut/core/error.hpp>
#include <taut/cpu/cpu.hpp>
#if TAUT_HAS_CUDA
#include <taut/cuda/cuda.hpp>
#endif

#include <initializer_list>
#include <string>

inline constexpr std::initializer_list<const char*> devices{"cpu", "cuda"};

/// Calls use.operator()<T>() with the tensor type of one of `devices`. Throws `taut::Error` if Taut was built
/// without it, `taut::DeviceError` if this machine does not have it.
template <class Use> auto with_device(const std::string& device, const Use& use) {
  if (device == "cpu") return use.template operator()<taut::CpuArray>();
#if TAUT_HAS_CUDA
  taut::cuda::require_device();
  return use.template operator()<taut::CudaTensor>();
#else
  throw taut::Error("--device " + device +
                    ": Taut was built without CUDA; build it where nvcc, cuBLAS and cuDNN are installed "
                    "(cmake says what it misses), or run with --device cpu");
#endif
}
