#include <gtest/gtest.h>

#include <taut/cpu/cpu.hpp>
#include <taut/io/checkpoint.hpp>
#include <taut/nn/mlp.hpp>
#include <taut/optim/adam.hpp>
#include <taut/optim/ema.hpp>
#include <taut/optim/sgd.hpp>

#include <string>

#include "../temporary_directory.hpp"

using namespace taut;
using G = Grad<CpuArray>;

namespace {

nn::Mlp<G> make(std::uint64_t seed, std::int64_t width = 4) {
  Rng rng{seed};
  return nn::Mlp<G>::make({3, width, 2}, rng);
}

float train_step(const nn::Mlp<G>& model, optim::Optimizer& optimizer, std::uint64_t seed) {
  Rng rng{seed};
  const auto x = CpuArray::normal({8, 3}, 0, 1, rng);
  Tape<CpuArray> tape;
  const auto loss = mean(square(model(x)));
  tape.backward(loss);
  optimizer.step();
  return loss.item();
}

class Checkpoint : public testing::Test {
 protected:
  const test::TemporaryDirectory directory;
  const std::string path = directory / "checkpoint.safetensors";
};

template <class Optimizer, class Rule>
void expect_the_same_training(const std::string& path, const Rule& rule) {
  auto model = make(1);
  Optimizer optimizer{model, rule};
  for (std::uint64_t i = 0; i < 3; ++i) train_step(model, optimizer, i);
  io::save_checkpoint(model, optimizer, path, {{"epoch", "3"}});

  auto other = make(2);
  Optimizer resumed{other, rule};
  EXPECT_EQ(io::load_checkpoint(other, resumed, path).at("epoch"), "3");
  EXPECT_EQ(resumed.steps(), 3);
  for (std::uint64_t i = 3; i < 6; ++i)
    EXPECT_EQ(train_step(other, resumed, i), train_step(model, optimizer, i)) << i;
}

TEST_F(Checkpoint, GoesOnBitwiseWhereTheTrainingWas) {
  expect_the_same_training<optim::Sgd>(path, optim::SgdRule{.lr = 0.1, .momentum = 0.9});
  expect_the_same_training<optim::AdamW>(path, optim::AdamRule<true>{.lr = 0.1});
}

TEST_F(Checkpoint, MayBeOfTheStart) {
  auto model = make(1), other = make(2);
  optim::Sgd sgd{model, {.lr = 0.1, .momentum = 0.9}}, resumed{other, {.lr = 0.1, .momentum = 0.9}};
  io::save_checkpoint(model, sgd, path);
  io::load_checkpoint(other, resumed, path);
  EXPECT_EQ(train_step(other, resumed, 1), train_step(model, sgd, 1));
}

TEST_F(Checkpoint, OfAnotherModelOrRuleChangesNothing) {
  auto model = make(1);
  optim::Sgd sgd{model, {.lr = 0.1, .momentum = 0.9}};
  train_step(model, sgd, 1);
  io::save_checkpoint(model, sgd, path);

  auto wider = make(2, 5);
  optim::Sgd wider_sgd{wider, {.lr = 0.1, .momentum = 0.9}};
  const auto before = wider.layers[0].weight.to_host();
  EXPECT_THROW(io::load_checkpoint(wider, wider_sgd, path), DataError);
  EXPECT_EQ(wider.layers[0].weight.to_host(), before);

  auto same = make(2);
  optim::Adam adam{same, {.lr = 0.1}};
  EXPECT_THROW(io::load_checkpoint(same, adam, path), DataError);
  EXPECT_EQ(adam.steps(), 0);

  auto trained = make(3), plain = make(4);
  optim::Adam trained_by_adam{trained, {.lr = 0.1}};
  train_step(trained, trained_by_adam, 1);
  io::save_checkpoint(trained, trained_by_adam, path);
  EXPECT_THROW(io::load_checkpoint(model, sgd, path), DataError);
  io::load(plain, path);  // the model alone
  EXPECT_EQ(plain.layers[0].weight.to_host(), trained.layers[0].weight.to_host());

  io::save(model, path);
  EXPECT_THROW(io::load_checkpoint(model, sgd, path), DataError);
}

TEST(Ema, AveragesWeightsAndForgetsTheStart) {
  auto model = make(1);
  optim::Sgd sgd{model, {.lr = 0.5}};
  optim::Ema ema{model, 0.999};
  const auto at = [](const auto& mlp) { return static_cast<double>(mlp.layers[0].weight.to_host()[0]); };
  double expected = at(model);
  for (int step = 0; step < 5; ++step) {
    train_step(model, sgd, static_cast<std::uint64_t>(step));
    ema.update(model);
    const double decay = std::min(0.999, (1.0 + step) / (10.0 + step));
    expected = decay * expected + (1 - decay) * at(model);
    EXPECT_NEAR(at(ema.model()), expected, 1e-6);
  }
  EXPECT_THROW((optim::Ema{model, 1.0}), Error);
  const double before = at(ema.model());
  EXPECT_THROW(ema.update(make(1, 5)), ShapeError);
  EXPECT_EQ(at(ema.model()), before);
}

}  // namespace
