#include <taut/taut.hpp>

#include <taut/data/data.hpp>
#include <taut/io/checkpoint.hpp>
#include <taut/io/chrome_trace.hpp>
#include <taut/nn/lenet.hpp>
#include <taut/nn/resnet.hpp>
#include <taut/optim/ema.hpp>
#include <taut/train/train.hpp>

float sum_of_ones(const taut::Shape& shape);

float sum_of_ones(const taut::Shape& shape) { return taut::sum(taut::CpuArray::ones(shape)).item(); }
