#pragma once
// All kernels of the CPU leaf.

#include "array.hpp"
#include "batch_norm.hpp"
#include "conv2d.hpp"
#include "cross_entropy.hpp"
#include "dropout.hpp"
#include "elementwise.hpp"
#include "embedding.hpp"
#include "layer_norm.hpp"
#include "matmul.hpp"
#include "max_pool2d.hpp"
#include "movement.hpp"
#include "reduce.hpp"
#include "resample2d.hpp"
#include "softmax.hpp"
#include "update.hpp"
