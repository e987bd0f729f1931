// The elementwise kernels of comparisons and selection. See map.cuh for how they run.

#include "taut/op/compare.hpp"

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP_BINARY(taut::op::Eq)
TAUT_CUDA_MAP_BINARY(taut::op::Ne)
TAUT_CUDA_MAP_BINARY(taut::op::Lt)
TAUT_CUDA_MAP_BINARY(taut::op::Le)
TAUT_CUDA_MAP(taut::op::Where, 3)
