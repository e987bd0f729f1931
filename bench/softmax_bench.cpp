// Softmax, its logarithm and the cross-entropy of a batch of logits: [64, 10] as of a network for digits,
// [128, 1000] and [4096, 1000]. `forward` is the kernel, `both` the operator and its gradient by a tape.
// `GB/s` counts each operand and each result of the kernels once, where the gradient reads a saved result or
// the logits again; `limit` is what a stream of as many bytes reaches. Exponentials do not count, so
// operators on logits in cache stay below 1; those of [64, 10] show what a call, and a tape, costs by itself.

#include <taut/taut.hpp>

#include <cmath>
#include <string>

#include "operands.hpp"
#include "report.hpp"

using namespace taut;

namespace {

struct Size {
  std::int64_t n, classes;

  Shape shape() const { return {n, classes}; }
  double elements() const { return static_cast<double>(n * classes); }
  std::string name() const { return std::to_string(n) + "x" + std::to_string(classes); }
};

const Size sizes[] = {{64, 10}, {128, 1000}, {4096, 1000}};

struct Operands {
  CpuArray x, g;
  CpuArray::Index labels;

  explicit Operands(const Size& size) {
    Rng rng(1);
    x = CpuArray::normal(size.shape(), 0, 3, rng);
    g = CpuArray::normal(size.shape(), 0, 1, rng);
    labels = bench::random_labels(size.n, size.classes, rng);
  }
};

/// ln Σ exp x of a row of the logits.
double log_sum(const CpuArray& x, std::int64_t row) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.shape()[1]; ++i)
    sum += std::exp(static_cast<double>(x.data()[row * x.shape()[1] + i]));
  return std::log(sum);
}

/// Adds an operator on x and on Grad(x), `f(x)`, of which `last` is the last result.
template <class F, class Last> void add(const std::string& name, const F& f, const Last& last) {
  for (const Size& size : sizes) {
    bench::add(name + "/forward/" + size.name(), [=](benchmark::State& state) {
      const Operands o(size);
      bench::measure(state, bench::moving(size.elements(), size.elements()),
                     [&] { benchmark::DoNotOptimize(f(o.x)); });
      const CpuArray y = f(o.x);
      bench::check(state,
                   bench::varied(y.span()) && bench::near(static_cast<double>(y.span().back()),
                                                          last(o.x, log_sum(o.x, size.n - 1)), 1e-5),
                   "the result is not that of the definition");
    });
    bench::add(name + "/both/" + size.name(), [=](benchmark::State& state) {
      const Operands o(size);
      const auto x = Grad<CpuArray>(o.x).track();
      const auto call = [&] {
        Tape<CpuArray> tape;
        tape.backward(f(x), o.g);
      };
      bench::measure(state, bench::moving(3 * size.elements(), 2 * size.elements()), call);
      // The results do not change when a constant is added to the logits: so the gradients add up to nothing.
      bench::check(
          state,
          bench::varied(x.grad().span()) && bench::near(static_cast<double>(sum(x.grad()).item()), 0, 0.1),
          "the gradient does not add up to nothing");
    });
  }
}

void loss(benchmark::State& state, const Size& size) {
  const Operands o(size);
  bench::measure(state, bench::moving(size.elements() + 2 * static_cast<double>(size.n), 1),
                 [&] { benchmark::DoNotOptimize(cross_entropy(o.x, o.labels)); });
  double expected = 0;
  for (std::int64_t i = 0; i < size.n; ++i)
    expected += log_sum(o.x, i) - static_cast<double>(o.x.data()[i * size.classes + o.labels.data()[i]]);
  bench::check(state,
               bench::near(static_cast<double>(cross_entropy(o.x, o.labels).item()),
                           expected / static_cast<double>(size.n), 1e-4),
               "the loss is not that of the definition");
}

void loss_and_gradient(benchmark::State& state, const Size& size) {
  const Operands o(size);
  const auto x = Grad<CpuArray>(o.x).track();
  const auto call = [&] {
    Tape<CpuArray> tape;
    tape.backward(cross_entropy(x, o.labels));
  };
  bench::measure(state, bench::moving(2 * size.elements() + 4 * static_cast<double>(size.n), size.elements()),
                 call);
  bench::check(
      state,
      bench::varied(x.grad().span()) && bench::near(static_cast<double>(sum(x.grad()).item()), 0, 1e-3),
      "the gradient does not add up to nothing");
}

const bool registered = [] {
  add(
      "softmax", [](const auto& x) { return softmax(x); },
      [](const CpuArray& x, double log_of_sum) {
        return std::exp(static_cast<double>(x.span().back()) - log_of_sum);
      });
  add(
      "log_softmax", [](const auto& x) { return log_softmax(x); },
      [](const CpuArray& x, double log_of_sum) { return static_cast<double>(x.span().back()) - log_of_sum; });
  for (const Size& size : sizes) {
    bench::add("cross_entropy/forward/" + size.name(),
               [&size](benchmark::State& state) { loss(state, size); });
    bench::add("cross_entropy/both/" + size.name(),
               [&size](benchmark::State& state) { loss_and_gradient(state, size); });
  }
  return true;
}();

}  // namespace
