#include <taut/taut.hpp>

#include <taut/data/data.hpp>
#include <taut/io/checkpoint.hpp>
#include <taut/io/chrome_trace.hpp>
#include <taut/nn/lenet.hpp>
#include <taut/nn/resnet.hpp>
#include <taut/optim/ema.hpp>
#include <taut/train/train.hpp>

#include <iostream>

// Defined in the other translation unit, which includes the same headers.
float sum_of_ones(const taut::Shape& shape);

int main() {
  const taut::Shape shape{2, 3};
  const float here = taut::sum(taut::CpuArray::ones(shape)).item();
  const float there = sum_of_ones(shape);
  if (here == 6.0f && there == here) return 0;
  std::cerr << "sum of 6 ones: " << here << " here, " << there << " in the other translation unit\n";
  return 1;
}
