// The toy backend against the CPU backend: values, derivatives, the other interpretations, and training runs
// of the same model with the same optimizer.

#include "toy_backend.hpp"

#include <gtest/gtest.h>
#include <taut/taut.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include "../temporary_directory.hpp"

namespace taut {
namespace {

using Double = BasicCpuArray<double>;

// Every interpretation takes the backend as it is.
static_assert(BlasTensor<Grad<toy::Array>> && BlasTensor<Grad<Grad<toy::Array>>>);
static_assert(DifferentiableTensor<Profiled<toy::Array>> && DifferentiableTensor<Checked<toy::Array>>);
static_assert(BlasTensor<Grad<Profiled<toy::Array>>>);

/// The largest difference between two tensors of whatever type.
template <class A, class B> double distance(const A& a, const B& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const auto x = a.to_host();
  const auto y = b.to_host();
  double largest = x.size() == y.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  return largest;
}

template <class T> double size_of(const T& x) { return distance(x, T::zeros(x.shape())); }

template <class T> using Program = std::function<T(const T&)>;

/// A program's value at a random point, and the gradient of a curved function of it.
template <class T>
std::pair<T, T> run(const Program<T>& plain, const Program<Grad<T>>& program, const Shape& shape) {
  Rng rng{1};
  const auto x = Grad<T>(T::normal(shape, 0, 1, rng)).track();
  Tape<T> tape;
  tape.backward(sum(square(program(x))));
  return {plain(x.value()), x.grad()};
}

/// A program of one tensor gives the same on both backends, and its gradient does not vanish.
template <class F> void expect_agreement(const char* name, const Shape& shape, const F& program) {
  SCOPED_TRACE(name);
  const auto [y_toy, dy_toy] = run<toy::Array>(program, program, shape);
  const auto [y_cpu, dy_cpu] = run<Double>(program, program, shape);
  EXPECT_LT(distance(y_toy, y_cpu), 1e-12);
  EXPECT_LT(distance(dy_toy, dy_cpu), 1e-11);
  EXPECT_GT(size_of(dy_toy), 1e-3);
}

template <class T> typename T::Index labels(std::vector<std::int64_t> values) {
  return T::Index::from_host(values, {static_cast<std::int64_t>(values.size())});
}

struct Cubic : op::Elementwise {
  static constexpr std::string_view name = "cubic";
  template <class S> constexpr S operator()(S x) const { return x * x * (x + S(2)); }
};

TEST(ToyBackend, ComputesElementwiseAsTheCpuDoes) {
  expect_agreement("arithmetic", {4, 3}, [](const auto& x) { return x * x / (2.0 + exp(x)) - 3 * x; });
  expect_agreement("broadcasting", {4, 3},
                   [](const auto& x) { return x * slice(x, 0, 1, 2) + slice(x, 1, 0, 1); });
  expect_agreement("a function of the user's", {5}, [](const auto& x) { return map(Cubic{}, x); });
}

TEST(ToyBackend, ReducesAndMovesAsTheCpuDoes) {
  expect_agreement("sum and mean", {4, 3},
                   [](const auto& x) { return sum(x, {0}) * mean(square(x), {-1}, true); });
  expect_agreement("extremes", {4, 3}, [](const auto& x) { return max(x, {1}) * min(square(x), {1}); });
  expect_agreement("reshape of a permuted view", {2, 3, 4}, [](const auto& x) {
    return reshape(permute(x, {2, 0, 1}), {4, -1});
  });
  expect_agreement("broadcast_to and sum_to", {4, 1}, [](const auto& x) {
    return sum_to(square(broadcast_to(x, {5, 4, 3})), {4, 1});
  });
  expect_agreement("slice and concat", {2, 6},
                   [](const auto& x) { return concat(1, slice(x, 1, 1, 6, 2), square(x)); });
  Rng rng{3}, same{3};
  EXPECT_EQ(argmax(toy::Array::normal({3, 5}, 0, 1, rng), 0).to_host(),
            argmax(Double::normal({3, 5}, 0, 1, same), 0).to_host());
}

TEST(ToyBackend, MultipliesAndClassifiesAsTheCpuDoes) {
  expect_agreement("matmul", {4, 3}, [](const auto& x) { return matmul(x, x, {.transpose_b = true}); });
  expect_agreement("batched matmul", {2, 3, 3},
                   [](const auto& x) { return matmul(slice(x, 0, 0, 1), x, {.transpose_a = true}); });
  expect_agreement("linear", {4, 3},
                   [](const auto& x) { return linear(x, slice(x, 0, 0, 2), mean(slice(x, 0, 0, 2), {1})); });
  expect_agreement("softmax", {3, 4}, [](const auto& x) { return softmax(x, 0) * log_softmax(x); });
  expect_agreement("cross-entropy", {3, 4}, []<class T>(const T& x) {
    return cross_entropy(x, labels<T>({3, 0, 2})) * 5.0 + pick(square(x), labels<T>({1, 1, 0}));
  });
  expect_agreement("dropout", {3, 7}, [](const auto& x) {
    Rng rng{5};
    return square(dropout(x, 0.4, Mode::train, rng));
  });
}

template <class T> T hessian_product() {
  Rng rng{2};
  const T x = T::normal({3, 4}, 0, 1, rng), v = T::normal({3, 4}, 0, 1, rng);
  const auto loss = []<class U>(const U& u) {
    return cross_entropy(map(Cubic{}, matmul(u, u, {.transpose_b = true})), labels<U>({2, 0, 1}));
  };
  return hessian_vector_product(loss, x, v);
}

TEST(ToyBackend, HasTheCpusSecondDerivatives) {
  const auto toy = hessian_product<toy::Array>();
  EXPECT_LT(distance(toy, hessian_product<Double>()), 1e-10);
  EXPECT_GT(size_of(toy), 1e-3);
}

TEST(ToyBackend, ReportsErrorsByTheOperatorsOwnRules) {
  const auto x = toy::Array::ones({2, 3});
  EXPECT_THROW(x + toy::Array::ones({2}), ShapeError);
  EXPECT_THROW(matmul(x, x), ShapeError);
  EXPECT_THROW(cross_entropy(x, labels<toy::Array>({0, 3})), Error);
  EXPECT_THROW(log(Checked<toy::Array>(-x)), Error);
}

TEST(ToyBackend, TakesStaticShapes) {
  const Typed<toy::Array, Shape{2, 3}> a{toy::Array::ones({2, 3})};
  const Typed<toy::Array, Shape{3, 4}> b{toy::Array::ones({3, 4})};
  const auto c = matmul(a, b);
  static_assert(decltype(c)::shape() == Shape{2, 4});
  EXPECT_EQ(sum(c.value()).item(), 24);
}

template <BlasTensor T> struct Classifier {
  nn::Linear<T> hidden, out;
  T operator()(const T& x) const { return out(relu(hidden(x))); }

  static Classifier make(Rng& rng) {
    return {nn::Linear<T>::make(4, 8, rng), nn::Linear<T>::make(8, 3, rng)};
  }
};

/// The losses of a training run on random data.
template <class T> std::vector<double> train(Classifier<Grad<T>> model) {
  Rng rng{7};
  const T x = T::normal({12, 4}, 0, 1, rng);
  const auto y = labels<T>({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
  optim::AdamW optimizer{model, {.lr = 0.1}};
  optimizer.set_clip_norm(0.3);
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    Tape<T> tape;
    const auto loss = cross_entropy(model(x), y);
    tape.backward(loss);
    optimizer.step();
    losses.push_back(loss.item());
  }
  return losses;
}

TEST(ToyBackend, TrainsAsTheCpuDoesStepByStep) {
  Rng rng{42}, same{42};
  const auto toy = train(Classifier<Grad<toy::Array>>::make(rng));
  const auto cpu = train(Classifier<Grad<Double>>::make(same));
  ASSERT_EQ(toy.size(), cpu.size());
  for (std::size_t step = 0; step < toy.size(); ++step) EXPECT_NEAR(toy[step], cpu[step], 1e-10) << step;
  EXPECT_LT(toy.back(), toy.front() - 0.05);
}

TEST(ToyBackend, ExchangesModelsWithTheCpu) {
  Rng rng{42};
  const auto model = Classifier<Grad<toy::Array>>::make(rng);
  const auto x = toy::Array::normal({5, 4}, 0, 1, rng);
  const auto y = rebind<toy::Array>(model)(x);

  const auto single = rebind<CpuArray>(model);
  const auto values = x.to_host();
  const auto x_single = CpuArray::from_host(std::vector<float>(values.begin(), values.end()), x.shape());
  EXPECT_LT(distance(y, single(x_single)), 1e-5);

  const test::TemporaryDirectory directory;
  const std::string path = directory / "model.safetensors";
  io::save(model, path);
  Rng other{1};
  auto loaded = Classifier<Double>::make(other);
  io::load(loaded, path);
  EXPECT_EQ(distance(loaded.hidden.weight, model.hidden.weight), 0);
  EXPECT_EQ(distance(*loaded.out.bias, *model.out.bias), 0);

  reset_profile();
  rebind<Profiled<toy::Array>>(model)(x);
  EXPECT_EQ(profile_entries().at("linear").calls, 2);
}

TEST(ToyBackend, LeavesOtherHandlesAloneWhenItUpdates) {
  Rng rng{42};
  auto model = nn::Linear<Grad<toy::Array>>::make(3, 2, rng);
  const auto before = rebind<toy::Array>(model);
  const auto values = before.weight.to_host();
  optim::Sgd optimizer{model, {.lr = 0.5}};
  Tape<toy::Array> tape;
  tape.backward(sum(square(model(toy::Array::ones({1, 3})))));
  optimizer.step();
  EXPECT_EQ(before.weight.to_host(), values);
  EXPECT_GT(distance(before.weight, model.weight), 1e-3);
}

}  // namespace
}  // namespace taut
