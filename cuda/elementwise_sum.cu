// The elementwise kernels of sums and differences. See map.cuh for how they run.

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP_BINARY(taut::op::Add)
TAUT_CUDA_MAP_BINARY(taut::op::Sub)
