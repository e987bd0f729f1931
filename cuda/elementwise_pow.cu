// The elementwise kernels of powers. See map.cuh for how they run.

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP_BINARY(taut::op::Pow)
