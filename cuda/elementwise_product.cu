// The elementwise kernels of products and quotients. See map.cuh for how they run.

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP_BINARY(taut::op::Mul)
TAUT_CUDA_MAP_BINARY(taut::op::Div)
