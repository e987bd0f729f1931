// The elementwise kernels of maxima and minima. See map.cuh for how they run.

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP_BINARY(taut::op::Maximum)
TAUT_CUDA_MAP_BINARY(taut::op::Minimum)
