// The same operands give the same bits, in whatever order threads and blocks run: who adds what to what
// depends on the shapes alone.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/cuda/kernel/launch.cuh>
#include <taut/interpret/grad.hpp>
#include <taut/nn/batch_norm2d.hpp>
#include <taut/nn/linear.hpp>
#include <taut/optim/adam.hpp>

#include <string>
#include <vector>

#include "emulator.hpp"

namespace taut::test {
namespace {

using Half = BasicCudaTensor<bfloat16>;

/// What f gives in each of the orders, with all digits.
template <class F> std::vector<std::vector<float>> in_every_order(const F& f) {
  const auto before = emulator::order();
  std::vector<std::vector<float>> results;
  for (const auto order : {emulator::Order::forward, emulator::Order::reverse, emulator::Order::shuffled}) {
    emulator::set_order(order);
    results.push_back(widen(f()).to_host());
  }
  emulator::set_order(before);
  return results;
}

/// Fails unless f gives the same in all orders, in float and in bfloat16.
template <class F, class... Xs> void expect_same(const std::string& what, const F& f, const Xs&... xs) {
  const auto single = in_every_order([&] { return f(xs...); });
  const auto half = in_every_order([&] { return f(convert<Half>(xs)...); });
  for (std::size_t i = 1; i < single.size(); ++i) {
    EXPECT_EQ(single[i], single[0]) << what;
    EXPECT_EQ(half[i], half[0]) << what << " in bfloat16";
  }
}

/// Numbers of which sums are rounded.
CudaTensor random(const Shape& shape, std::uint64_t seed = 1) {
  Rng rng{seed};
  return CudaTensor::normal(shape, 0.5f, 1, rng);
}

__global__ void add_atomically(std::int64_t count, const float* from, float* to) {
  const std::int64_t i = cuda::grid_thread();
  if (i < count) atomicAdd(to, from[i]);
}

TEST(CudaDeterminism, ShowsInSumsThatDependOnTheOrder) {
  const auto x = random({1000});
  const auto sums = in_every_order([&] {
    auto total = CudaTensor::zeros({});
    cuda::launch(add_atomically, 4, 256, 0, cuda::current_stream(), x.shape().size(), x.data(),
                 total.mutable_data());
    return total;
  });
  EXPECT_NE(sums[1], sums[0]);
  EXPECT_NE(sums[2], sums[0]);
}

TEST(CudaDeterminism, OfReductions) {
  for (const auto& [shape, axes] : std::initializer_list<std::pair<Shape, Axes>>{
           {{100'000}, {}}, {{3, 5000}, {1}}, {{300, 33}, {1}}, {{5000, 3}, {0}}, {{2, 300, 67}, {0, 1}}})
    expect_same(
        "sum of " + to_string(shape), [axes = axes](const auto& x) { return sum(x, axes); }, random(shape));
}

TEST(CudaDeterminism, OfSoftmax) {
  for (const Shape& shape : {Shape{2, 5000}, Shape{70, 33}})
    for (const int axis : {0, 1}) {
      const std::string of = " of " + to_string(shape) + " along " + std::to_string(axis);
      expect_same(
          "softmax" + of, [=](const auto& x) { return softmax(x, axis); }, random(shape));
      expect_same(
          "log_softmax" + of, [=](const auto& x) { return log_softmax(x, axis); }, random(shape));
    }
}

template <class T> void append(CudaTensor& all, const T& x) {
  all = concat(0, all, reshape(widen(x), {x.shape().size()}));
}

/// The gradients by all operands, one after the other.
template <class T, class F> CudaTensor gradients(const F& f, const T& g, const std::vector<T>& operands) {
  std::vector<Grad<T>> leaves(operands.begin(), operands.end());
  for (auto& leaf : leaves) leaf.track();
  Tape<T> tape;
  tape.backward(f(leaves), g);
  CudaTensor all = CudaTensor::zeros({0});
  for (const auto& leaf : leaves) append(all, leaf.grad());
  return all;
}

TEST(CudaDeterminism, OfBatchNormalisation) {
  for (const Shape& shape : {Shape{16, 8, 33, 9}, Shape{300, 3}}) {
    const auto x = random(shape), g = random(shape, 2), weight = random({shape[1]}, 3),
               bias = random({shape[1]}, 4);
    expect_same(
        "batch_statistics of " + to_string(shape), [](const auto& t) { return batch_statistics(t); }, x);
    expect_same(
        "gradients of batch_norm of " + to_string(shape),
        []<class T>(const T& dy, const T& t, const T& w, const T& b) {
          return gradients([](const auto& xs) { return batch_norm(xs[0], xs[1], xs[2], {.relu = true}); }, dy,
                           std::vector<T>{t, w, b});
        },
        g, x, weight, bias);
  }
}

TEST(CudaDeterminism, OfLayerNormalisation) {
  for (const Shape& shape : {Shape{1000, 33}, Shape{3, 5000}})
    expect_same(
        "gradients of layer_norm of " + to_string(shape),
        []<class T>(const T& dy, const T& t, const T& w, const T& b) {
          return gradients([](const auto& xs) { return layer_norm(xs[0], xs[1], xs[2]); }, dy,
                           std::vector<T>{t, w, b});
        },
        random(shape, 2), random(shape), random({shape[1]}, 3), random({shape[1]}, 4));
}

template <AnyTensor T> struct Net {
  nn::Conv2d<T> conv;
  nn::BatchNorm2d<T> norm;
  nn::Linear<T> out;

  static Net make() {
    Rng rng{3};
    return {nn::Conv2d<T>::make(2, 8, 3, rng), nn::BatchNorm2d<T>::make(8),
            nn::Linear<T>::make(8 * 3 * 3, 5, rng)};
  }
  T operator()(const T& x, Rng& rng) const {
    const T pooled = max_pool2d(norm.relu(conv(x), Mode::train), {.kernel = 3, .stride = 2, .padding = 1});
    return out(dropout(flatten(pooled), 0.4, Mode::train, rng));
  }
};

/// The weights and statistics after some steps.
template <class T> CudaTensor trained(const T& x) {
  auto model = Net<Grad<T>>::make();
  optim::Adam adam{model, {.lr = 0.01, .weight_decay = 1e-3}};
  adam.set_clip_norm(0.1);
  Rng rng{7};
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) labels.push_back(i % 5);
  const auto targets = T::Index::from_host(labels, {x.shape()[0]});
  for (int step = 0; step < 3; ++step) {
    Tape<T> tape;
    tape.backward(cross_entropy(model(Grad<T>(x), rng), targets));
    adam.step();
  }
  CudaTensor all = CudaTensor::zeros({0});
  const auto net = rebind<T>(model);
  for_each_tensor(net, [&](const std::string&, const auto& tensor) { append(all, tensor); });
  return all;
}

TEST(CudaDeterminism, OfTraining) {
  expect_same(
      "weights", [](const auto& x) { return trained(x); }, random({70, 2, 8, 8}));
}

}  // namespace
}  // namespace taut::test
