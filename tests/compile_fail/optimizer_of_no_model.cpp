// expect: an optimizer takes a model: a struct with fields of Grad<T>, layers or other models
// A model as PyTorch has it, with a constructor, has no fields that can be found.
#include <taut/taut.hpp>

using namespace taut;
using G = Grad<CpuArray>;

struct Line {
  nn::Linear<G> layer;
#ifndef CONTROL
  explicit Line(nn::Linear<G> given) : layer(given) {}
#endif
};

int main() {
  Rng rng{1};
  Line line{nn::Linear<G>::make(2, 1, rng)};
  optim::Sgd sgd{line, {.lr = 0.1}};
}
