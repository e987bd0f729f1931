// The elementwise kernels of roots, squares, exponentials and logarithms. See map.cuh for how they run.

#include "taut/op/unary.hpp"

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP(taut::op::Exp, 1)
TAUT_CUDA_MAP(taut::op::Log, 1)
TAUT_CUDA_MAP(taut::op::Sqrt, 1)
TAUT_CUDA_MAP(taut::op::Square, 1)
TAUT_CUDA_MAP(taut::op::Abs, 1)
