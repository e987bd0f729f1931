// A user's program: it fits a line by gradient descent and fails if the fit is bad.
#include <taut/taut.hpp>

#include <array>
#include <iostream>

int main() {
  using T = taut::CpuArray;
  taut::Rng rng{1};
  auto line = taut::nn::Linear<taut::Grad<T>>::make(1, 1, rng);
  taut::optim::Sgd sgd{line, {.lr = 0.1f}};
  const auto x = T::from_host(std::array{0.f, 1.f, 2.f}, {3, 1});
  const auto y = T::from_host(std::array{1.f, 3.f, 5.f}, {3, 1});
  float last = 1.0f;
  for (int step = 0; step < 500; ++step) {
    taut::Tape<T> tape;
    auto loss = taut::mean(taut::square(line(x) - y));
    tape.backward(loss);
    sgd.step();
    last = loss.value().item();
  }
  std::cout << "loss " << last << '\n';
  return last < 1e-4f ? 0 : 1;
}
