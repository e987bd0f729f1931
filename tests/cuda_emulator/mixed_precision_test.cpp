// Training in bfloat16: optimizers keep float masters, normalisation keeps float statistics, and models over
// `Grad<BasicCudaTensor<bfloat16>>` come out as those in float do.

#include <gtest/gtest.h>
#include <taut/concepts.hpp>
#include <taut/cpu/cpu.hpp>
#include <taut/cuda/cuda.hpp>
#include <taut/interpret/functional.hpp>
#include <taut/io/checkpoint.hpp>
#include <taut/nn/mlp.hpp>
#include <taut/nn/resnet.hpp>
#include <taut/optim/adam.hpp>
#include <taut/optim/ema.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/fit.hpp>

#include <string>

#include "../temporary_directory.hpp"
#include "compare.hpp"
#include "small_net.hpp"

namespace taut::test {
namespace {

using Half = BasicCudaTensor<bfloat16>;
using GradHalf = Grad<Half>;

static_assert(std::same_as<Widened<GradHalf>, CudaTensor> && std::same_as<Widened<Half>, CudaTensor>);
static_assert(std::same_as<Widened<Grad<CudaTensor>>, Grad<CudaTensor>>);
static_assert(ImageTensor<GradHalf>);

TEST(Convert, IsExactThereAndRoundedBack) {
  for (const auto n : lengths) {
    const auto values = numbers(n);
    const auto x = on_device<bfloat16>(CpuArray::from_host(values, {n}));
    EXPECT_EQ(widen(x).to_host(), values);
    const auto thirds = CudaTensor::from_host(values, {n}) / 3;
    const auto rounded = convert<Half>(thirds).to_host();
    const auto exact = thirds.to_host();
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(rounded[i].bits, bfloat16(exact[i]).bits);
  }
  const auto images = on_device<bfloat16>(array({2, 3, 4, 5})).in_layout(cuda::Layout::channels_last);
  EXPECT_EQ(widen(images).layout(), cuda::Layout::channels_last);
  EXPECT_EQ(widen(images).to_host(), array({2, 3, 4, 5}).to_host());
}

template <AnyTensor T> struct One { T p; };

/// A parameter of 1 after 1,000 steps by a gradient of 1.
template <class Optimizer, class Rule> float after_small_updates(const Rule& rule) {
  One<GradHalf> model{nn::parameter(GradHalf::ones({1}))};
  Optimizer optimizer(model, rule);
  for (int step = 0; step < 1000; ++step) {
    Tape<Half> tape;
    tape.backward(sum(model.p));
    optimizer.step();
  }
  return model.p.item();
}

// 1 - 1e-4 is 1 in bfloat16.
TEST(MixedPrecision, AddsUpUpdatesThatBfloat16WouldLose) {
  EXPECT_EQ(after_small_updates<optim::Sgd>(optim::SgdRule{.lr = 1e-4}), float(bfloat16(0.9f)));
  EXPECT_EQ(after_small_updates<optim::Adam>(optim::AdamRule<false>{.lr = 1e-4}), float(bfloat16(0.9f)));
}

TEST(MixedPrecision, ClipsByANormInFloat) {
  One<GradHalf> model{nn::parameter(GradHalf::ones({1000}))};
  optim::Sgd optimizer(model, {.lr = 1});
  optimizer.set_clip_norm(1);
  Tape<Half> tape;
  tape.backward(sum(model.p));
  optimizer.step();
  EXPECT_NEAR(optimizer.gradient_norm(), std::sqrt(1000.0), 1e-4);
}

TEST(MixedPrecision, AveragesWeightsInFloat) {
  One<GradHalf> model{nn::parameter(GradHalf::ones({1}))};
  optim::Ema ema(model, 0.999, 100000);
  model.p.assign(Half::full({1}, bfloat16(2.0f)));
  for (int i = 0; i < 100; ++i) ema.update(model);
  EXPECT_NEAR(ema.model().p.item(), 2 - std::pow(0.999, 100), 1e-4);
}

TEST(MixedPrecision, HasSecondDerivatives) {
  const auto f = [](const auto& x) {
    return sum(tanh(x) * exp(-0.5f * square(x)) + gelu(x) / (square(x) + 2.0f));
  };
  const auto x = array({200}), v = array({200}, 2);
  const auto got = hessian_vector_product(f, on_device<bfloat16>(x), on_device<bfloat16>(v)).to_host();
  const auto expected = hessian_vector_product(f, x, v).to_host();
  EXPECT_GT(largest_size(expected), 1.0f);
  expect_close(got, expected, 0x1p-5f * largest_size(expected), "hessian_vector_product in bfloat16");
}

/// Samples of four classes, each about a point of its own; all numbers are bfloat16's.
struct Samples {
  CpuArray x;
  std::vector<std::int64_t> labels;

  Samples(const Shape& shape, float spread) {
    const auto count = static_cast<std::size_t>(shape[0]),
               size = static_cast<std::size_t>(shape.size()) / count;
    auto values = numbers(shape.size(), 3);
    const auto centres = numbers(static_cast<std::int64_t>(4 * size), 4);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = bfloat16(spread * values[i] + centres[i / size % 4 * size + i % size] / 2);
    for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<std::int64_t>(i % 4));
    x = CpuArray::from_host(values, shape);
  }

  template <class T> T tensor() const { return taut::detail::convert_tensor<T>(x, false); }
  template <class T> typename T::Index targets() const {
    return T::Index::from_host(labels, {static_cast<std::int64_t>(labels.size())});
  }
  std::int64_t size() const { return x.shape()[0]; }
};

/// The losses of all steps, and that of the model in evaluation afterwards.
template <class M> std::vector<double> losses(M model, const Samples& samples, int steps) {
  const std::vector<Samples> loader(1, samples);
  optim::Adam adam(model, {.lr = 0.01});
  const auto history = train::fit(model, adam, loader, {.epochs = steps});
  std::vector<double> all;
  for (const auto& epoch : history) all.push_back(epoch.train_loss);
  all.push_back(train::evaluate(model, loader).loss);
  return all;
}

/// A model in bfloat16 follows the losses of the same model in float. A step's rounding errors, some of 2^-9
/// of each activation and of each gradient, point in all directions, and the steps after it correct what they
/// did: 5 % are more than twice what is left of them here.
template <class M> void expect_losses_as_in_float(const M& model, const Samples& samples, int steps) {
  const auto half = losses(model, samples, steps);
  const auto single = losses(rebind<Grad<CpuArray>>(model), samples, steps);
  EXPECT_LT(single.back(), single.front() / 3) << "there is nothing to compare before it learns";
  const auto first = static_cast<float>(half.front());
  EXPECT_NE(first, float(bfloat16(first))) << "losses are reported with float's digits";
  for (std::size_t i = 0; i < single.size(); ++i) EXPECT_NEAR(half[i], single[i], 0.05 * single[i]) << i;
}

/// One step, on an input that the seed names.
template <class M> void step(M& model, optim::Optimizer& optimizer, std::uint64_t seed) {
  Rng rng{seed};
  const auto x = Half::normal({4, 2, 5, 5}, bfloat16(1.0f), bfloat16(2.0f), rng);
  Tape<Half> tape;
  tape.backward(mean(square(model(GradHalf(x), Mode::train))));
  optimizer.step();
}

template <class M> std::vector<std::vector<float>> numbers_of(const M& model) {
  std::vector<std::vector<float>> all;
  for_each_tensor(model, [&](const std::string&, const auto& tensor) {
    const auto values = tensor.to_host();
    all.emplace_back(values.begin(), values.end());
  });
  return all;
}

SmallNet<GradHalf> make_net(std::uint64_t seed) {
  Rng rng{seed};
  return SmallNet<GradHalf>::make(2, 8, 4, 1, rng);
}

class MixedPrecisionFiles : public testing::Test {
 protected:
  const TemporaryDirectory directory;
  const std::string path = directory / "checkpoint.safetensors";
};

TEST_F(MixedPrecisionFiles, GoOnBitwiseWhereTheTrainingWas) {
  auto model = make_net(1), other = make_net(2);
  optim::Adam adam(model, {.lr = 1e-3}), resumed(other, {.lr = 1e-3});
  for (std::uint64_t i = 0; i < 3; ++i) step(model, adam, i);
  io::save_checkpoint(model, adam, path);
  io::load_checkpoint(other, resumed, path);
  for (std::uint64_t i = 3; i < 6; ++i) step(model, adam, i), step(other, resumed, i);
  EXPECT_EQ(numbers_of(other), numbers_of(model));
  const auto kept = adam.state(), kept_by_resumed = resumed.state();
  ASSERT_EQ(kept.size(), kept_by_resumed.size());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].values, kept_by_resumed[i].values);
}

TEST_F(MixedPrecisionFiles, HaveAllDigitsOfModels) {
  auto model = make_net(1), other = make_net(2);
  optim::Sgd sgd(model, {.lr = 0.1});
  step(model, sgd, 1);
  io::save(model, path);
  io::load(other, path);
  EXPECT_EQ(numbers_of(other), numbers_of(model));
  auto single = rebind<CpuArray>(other);
  EXPECT_EQ(numbers_of(single), numbers_of(model));
  EXPECT_EQ(numbers_of(rebind<Half>(single)), numbers_of(model));
  const float statistic = model.bn1.running_mean.value.to_host()[0];
  EXPECT_NE(statistic, float(bfloat16(statistic))) << "a running mean that bfloat16 does not have";
}

TEST(MixedPrecision, FoldsNormalisationIntoConvolutions) {
  auto model = make_net(1);
  optim::Sgd sgd(model, {.lr = 0.1});
  step(model, sgd, 1);
  const auto net = rebind<Half>(model);
  const auto x = on_device<bfloat16>(array({2, 2, 5, 5}));
  const auto expected = widen(net.bn1(net.conv1(x), Mode::eval)).to_host();
  auto conv = net.conv1;
  std::optional norm = net.bn1;
  nn::fold(conv, norm);
  // The weights' rounding errors, of 2^-9 each, come on top of the results' own.
  expect_close(conv(x).to_host(), expected, 4 * 0x1p-8f * largest_size(expected), "folded");
}

TEST(MixedPrecision, TrainsAPerceptronAsFloatDoes) {
  Rng rng{1};
  expect_losses_as_in_float(nn::Mlp<GradHalf>::make({16, 32, 4}, rng), Samples({64, 16}, 0.5f), 40);
}

TEST(MixedPrecision, TrainsAConvolutionalNetworkAsFloatDoes) {
  Rng rng{2};
  expect_losses_as_in_float(SmallNet<GradHalf>::make(2, 8, 4, 1, rng), Samples({20, 2, 5, 5}, 0.5f), 40);
}

}  // namespace
}  // namespace taut::test
