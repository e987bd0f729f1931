// expect: matmul: the inner dimensions differ
// The operands of a static shape do not fit together.
#include <taut/taut.hpp>

using namespace taut;

int main() {
  Typed<CpuArray, Shape{2, 3}> a{CpuArray::ones({2, 3})};
  Typed<CpuArray, Shape{3, 4}> b{CpuArray::ones({3, 4})};
#ifdef CONTROL
  return decltype(matmul(a, b))::shape()[0] == 2 ? 0 : 1;
#else
  return decltype(matmul(b, a))::shape()[0] == 2 ? 0 : 1;
#endif
}
