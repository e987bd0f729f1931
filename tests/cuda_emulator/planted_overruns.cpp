// Kernels that reach one element beyond memory of each kind, to show that AddressSanitizer, with which this
// program is always compiled, stops them under the emulator: planted_overruns none | static | dynamic |
// device.

#include <cstdio>
#include <string_view>
#include <vector>

#include "taut/cuda/kernel/launch.cuh"

namespace taut::cuda {
namespace {

constexpr unsigned threads = 64;

// UndefinedBehaviorSanitizer knows the bounds of this array too and would speak first.
__attribute__((no_sanitize("undefined"))) __global__ void write_static_shared(unsigned beyond, int* to) {
  __shared__ int values[threads];
  values[threadIdx.x + beyond] = 1;
  __syncthreads();
  to[threadIdx.x] = values[threadIdx.x];
}

__global__ void write_dynamic_shared(unsigned beyond, int* to) {
  dynamic_shared<int>()[threadIdx.x + beyond] = 1;
  __syncthreads();
  to[threadIdx.x] = dynamic_shared<int>()[threadIdx.x];
}

__global__ void write_device(unsigned beyond, int* to) {
  __syncthreads();
  to[threadIdx.x + beyond] = 1;
}

void run(std::string_view kind) {
  std::vector<int> to(threads);
  launch(write_static_shared, 1, threads, 0, nullptr, kind == "static", to.data());
  launch(write_dynamic_shared, 1, threads, threads * sizeof(int), nullptr, kind == "dynamic", to.data());
  launch(write_device, 1, threads, 0, nullptr, kind == "device", to.data());
}

}  // namespace
}  // namespace taut::cuda

int main(int count, char** arguments) {
  if (count != 2) return 2;
  taut::cuda::run(arguments[1]);
  std::puts("nothing was found");
}
