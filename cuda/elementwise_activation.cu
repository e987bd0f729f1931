// The elementwise kernels of activation functions. See map.cuh for how they run.

#include "taut/op/unary.hpp"

#include "taut/cuda/map.cuh"

TAUT_CUDA_MAP(taut::op::Erf, 1)
TAUT_CUDA_MAP(taut::op::Tanh, 1)
TAUT_CUDA_MAP(taut::op::Sigmoid, 1)
TAUT_CUDA_MAP(taut::op::Relu, 1)
TAUT_CUDA_MAP(taut::op::AddRelu, 2)
TAUT_CUDA_MAP(taut::op::Gelu, 1)
TAUT_CUDA_MAP(taut::op::GeluTanh, 1)
