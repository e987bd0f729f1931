// The elementwise kernels of trigonometric functions. See map.cuh for how they run.

#include "taut/op/unary.hpp"

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP(taut::op::Sin, 1)
TAUT_CUDA_MAP(taut::op::Cos, 1)
