#pragma once
// All kernels of the CPU leaf.

#include "array.hpp"
#include "cross_entropy.hpp"
#include "dropout.hpp"
#include "elementwise.hpp"
#include "matmul.hpp"
#include "movement.hpp"
#include "reduce.hpp"
#include "softmax.hpp"
#include "update.hpp"
