// expect: cross_entropy: the labels must be integers
// Labels that are an array of float would otherwise fail among all overloads of eval, in four hundred lines.
#include <taut/taut.hpp>

using namespace taut;

#ifdef CONTROL
using Labels = CpuArray::Index;
#else
using Labels = CpuArray;
#endif

int main() {
  const Grad<CpuArray> logits = CpuArray::ones({2, 3});
  cross_entropy(logits, Labels::zeros({2}));
}
