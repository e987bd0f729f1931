#include "timing.hpp"

#include <cuda_runtime_api.h>

namespace taut::cuda {

bool can_time(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  return cudaStreamIsCapturing(reinterpret_cast<cudaStream_t>(stream), &status) == cudaSuccess &&
         status == cudaStreamCaptureStatusNone;
}

}  // namespace taut::cuda
