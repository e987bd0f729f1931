#include "softplus.hpp"

#include <taut/cuda/map.cuh>

TAUT_CUDA_MAP(Softplus, 1)
