// Fits a line to noisy points: all that training is, in one small loop.

#include <taut/cpu/cpu.hpp>
#include <taut/nn/linear.hpp>
#include <taut/optim/sgd.hpp>

#include <cassert>
#include <cmath>
#include <iostream>

using namespace taut;

int main() {
  Rng rng{42};

  // 200 points of y = 3x + 1, with noise.
  const auto x = CpuArray::uniform({200, 1}, -2, 2, rng);
  const auto y = 3.0f * x + 1.0f + CpuArray::normal({200, 1}, 0, 0.1f, rng);

  // A model over `Grad` can be trained: y = x wᵀ + b with a random start.
  auto line = nn::Linear<Grad<CpuArray>>::make(1, 1, rng);
  optim::Sgd sgd{line, {.lr = 0.05}};

  for (int step = 1; step <= 100; ++step) {
    Tape<CpuArray> tape;  // records what is computed in its scope
    const auto loss = mean(square(line(x) - y));
    tape.backward(loss);  // the gradients of weight and bias
    sgd.step();           // moves both against them
    if (step % 20 == 0) std::cout << "step " << step << ": loss " << loss.item() << '\n';
  }

  const float weight = line.weight.item(), bias = line.bias->item();
  std::cout << "y = " << weight << " x + " << bias << "; the points were made by y = 3 x + 1\n";
  assert(std::abs(weight - 3) < 0.05f && std::abs(bias - 1) < 0.05f);
}
