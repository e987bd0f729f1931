// expect: CudaTensor: elementwise operators have no kernels for third derivatives
// A derivative that no .cu file has kernels for is an error of the compiler, not of the linker.
#include <taut/cuda/elementwise.hpp>
#include <taut/cuda/reduce.hpp>
#include <taut/interpret/functional.hpp>
#include <taut/op/unary.hpp>

using namespace taut;

int main() {
  const auto slope = [](const auto& f) { return [f](const auto& x) { return sum(grad(f)(x)); }; };
  const auto f = [](const auto& x) { return sum(exp(x)); };
  const auto x = CudaTensor::ones({3});
#ifdef CONTROL
  return grad(slope(f))(x).shape()[0] == 3 ? 0 : 1;
#else
  return grad(slope(slope(f)))(x).shape()[0] == 3 ? 0 : 1;
#endif
}
