// A user's program: a function of its own on the GPU, where there is one, and its derivative.
#include <taut/cuda/elementwise.hpp>
#include <taut/cuda/reduce.hpp>
#include <taut/interpret/functional.hpp>

#include <cmath>
#include <iostream>

#include "softplus.hpp"

int main() {
  try {
    taut::cuda::require_device();
  } catch (const taut::Error& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  const auto x = taut::CudaTensor::full({3}, 0.5f);
  const auto slope = taut::grad([](const auto& v) { return sum(map(Softplus{}, v)); })(x);
  const float value = map(Softplus{}, x).to_host()[0], slope_there = slope.to_host()[0];
  std::cout << "softplus(0.5) = " << value << ", with slope " << slope_there << '\n';
  return std::abs(value - 0.974077f) < 1e-5f && std::abs(slope_there - 0.622459f) < 1e-5f ? 0 : 1;
}
