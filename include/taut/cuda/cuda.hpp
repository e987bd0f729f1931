#pragma once
// The CUDA leaf: tensors on GPUs and all their operators. Programs that include it link `taut::cuda`.

#include "elementwise.hpp"
#include "movement.hpp"
#include "reduce.hpp"
#include "tensor.hpp"
