// Fits a line to noisy points: all that training is, in one small loop.

#include <taut/nn/linear.hpp>
#include <taut/optim/sgd.hpp>

#include <cassert>
#include <cmath>
#include <exception>
#include <iostream>
#include <string>

#include "command_line.hpp"
#include "device.hpp"

using namespace taut;

namespace {

/// The whole run on the device of T.
template <AnyTensor T> void run() {
  Rng rng{42};

  // 200 points of y = 3x + 1, with noise.
  const auto x = T::uniform({200, 1}, -2, 2, rng);
  const auto y = 3.0f * x + 1.0f + T::normal({200, 1}, 0, 0.1f, rng);

  // A model over `Grad` can be trained: y = x wᵀ + b with a random start.
  auto line = nn::Linear<Grad<T>>::make(1, 1, rng);
  optim::Sgd sgd{line, {.lr = 0.05}};

  for (int step = 1; step <= 100; ++step) {
    Tape<T> tape;  // records what is computed in its scope
    const auto loss = mean(square(line(x) - y));
    tape.backward(loss);  // the gradients of weight and bias
    sgd.step();           // moves both against them
    if (step % 20 == 0) std::cout << "step " << step << ": loss " << loss.item() << '\n';
  }

  const float weight = line.weight.item(), bias = line.bias->item();
  std::cout << "y = " << weight << " x + " << bias << "; the points were made by y = 3 x + 1\n";
  assert(std::abs(weight - 3) < 0.05f && std::abs(bias - 1) < 0.05f);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string device = "cpu";
    CommandLine line("Fits a line to noisy points.");
    line.choice("--device", device, devices, "what computes");
    if (line.parse(argc, argv)) with_device(device, []<class T>() { run<T>(); });
  } catch (const std::exception& error) {
    std::cerr << "linear_regression: " << error.what() << '\n';
    return 1;
  }
}
