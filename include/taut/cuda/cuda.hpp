#pragma once
// The CUDA leaf: tensors on GPUs and all their operators. Programs that include it link `taut::cuda`.

#include "batch_norm.hpp"
#include "conv2d.hpp"
#include "convert.hpp"
#include "cross_entropy.hpp"
#include "dropout.hpp"
#include "elementwise.hpp"
#include "matmul.hpp"
#include "max_pool2d.hpp"
#include "movement.hpp"
#include "precision.hpp"
#include "reduce.hpp"
#include "resample2d.hpp"
#include "softmax.hpp"
#include "tensor.hpp"
#include "update.hpp"
