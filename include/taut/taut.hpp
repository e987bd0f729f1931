#pragma once
// Tensors, gradients, models, optimizers and model files on the CPU. Data sets and the training loop have
// headers of their own, data/ and train/; each header also stands alone.

#include "concepts.hpp"
#include "cpu/cpu.hpp"
#include "interpret/checked.hpp"
#include "interpret/functional.hpp"
#include "interpret/grad.hpp"
#include "interpret/profiled.hpp"
#include "interpret/shape_tensor.hpp"
#include "interpret/typed.hpp"
#include "io/model.hpp"
#include "nn/linear.hpp"
#include "nn/mlp.hpp"
#include "nn/model.hpp"
#include "nn/summary.hpp"
#include "optim/adam.hpp"
#include "optim/schedule.hpp"
#include "optim/sgd.hpp"
