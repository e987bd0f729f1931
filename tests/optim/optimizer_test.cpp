// Update rules against their formulas, computed step by step in double.
#include <gtest/gtest.h>

#include <cmath>
#include <taut/taut.hpp>

using namespace taut;
using D = BasicCpuArray<double>;
using GD = Grad<D>;

namespace {

struct Parameter {
  GD p;
};

/// Runs `steps` steps on the gradient 2 (p - target) + 0.3 of a small loss and returns the parameter after
/// each.
template <class Optimizer, class Rule>
std::vector<std::vector<double>> path(Rule rule, int steps, double clip = 0) {
  Parameter model{GD(D::from_host(std::array{1.0, -2.0, 0.5}, {3})).track()};
  const auto target = D::from_host(std::array{0.2, 0.4, -0.6}, {3});
  Optimizer optimizer(model, rule);
  optimizer.set_clip_norm(clip);
  std::vector<std::vector<double>> result;
  for (int i = 0; i < steps; ++i) {
    Tape<D> tape;
    tape.backward(sum(square(model.p - target) + 0.3 * model.p));
    optimizer.step();
    result.push_back(model.p.to_host());
  }
  return result;
}

/// The same with a scalar update written out: update(p, g, step).
template <class Update>
std::vector<std::vector<double>> expected(int steps, const Update& make_update, double clip = 0) {
  std::vector<double> p{1.0, -2.0, 0.5};
  const std::vector<double> target{0.2, 0.4, -0.6};
  std::vector updates(3, make_update());
  std::vector<std::vector<double>> result;
  for (int step = 1; step <= steps; ++step) {
    std::vector<double> g(3);
    double norm = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      g[i] = 2 * (p[i] - target[i]) + 0.3;
      norm += g[i] * g[i];
    }
    const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(norm) + 1e-6)) : 1;
    for (std::size_t i = 0; i < 3; ++i) p[i] = updates[i](p[i], scale * g[i], step);
    result.push_back(p);
  }
  return result;
}

void expect_same(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b,
                 double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j)
      EXPECT_NEAR(a[i][j], b[i][j], tolerance) << "step " << i + 1;
}

auto sgd_formula(double lr, double momentum, double decay, bool nesterov) {
  return [=] {
    return [=, m = 0.0](double p, double g, int) mutable {
      g += decay * p;
      m = momentum * m + g;
      return p - lr * (nesterov ? g + momentum * m : m);
    };
  };
}

TEST(Sgd, FollowsItsFormula) {
  expect_same(path<optim::Sgd>(optim::SgdRule{.lr = 0.125f}, 10),
              expected(10, sgd_formula(0.125, 0, 0, false)), 1e-12);
  const optim::SgdRule rule{.lr = 0.0625f, .momentum = 0.875f, .weight_decay = 0.03125f};
  expect_same(path<optim::Sgd>(rule, 10), expected(10, sgd_formula(0.0625, 0.875, 0.03125, false)), 1e-12);
  auto nesterov = rule;
  nesterov.nesterov = true;
  expect_same(path<optim::Sgd>(nesterov, 10), expected(10, sgd_formula(0.0625, 0.875, 0.03125, true)), 1e-12);
}

auto adam_formula(double lr, double decay, bool decoupled) {
  return [=] {
    return [=, m = 0.0, v = 0.0](double p, double g, int step) mutable {
      if (decoupled)
        p -= lr * decay * p;
      else
        g += decay * p;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      return p - lr * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
    };
  };
}

TEST(Adam, FollowsItsFormula) {
  expect_same(path<optim::Adam>(optim::AdamRule<false>{.lr = 0.1}, 20),
              expected(20, adam_formula(0.1, 0, false)), 1e-9);
  expect_same(path<optim::Adam>(optim::AdamRule<false>{.lr = 0.1, .weight_decay = 0.05}, 20),
              expected(20, adam_formula(0.1, 0.05, false)), 1e-9);
}

TEST(AdamW, FollowsItsFormula) {
  expect_same(path<optim::AdamW>(optim::AdamRule<true>{.lr = 0.1, .weight_decay = 0.05}, 20),
              expected(20, adam_formula(0.1, 0.05, true)), 1e-9);
}

TEST(Optimizer, ClipsByTheGlobalNorm) {
  const optim::SgdRule rule{.lr = 0.125f, .momentum = 0.5f};
  expect_same(path<optim::Sgd>(rule, 10, 0.7), expected(10, sgd_formula(0.125, 0.5, 0, false), 0.7), 1e-12);
  expect_same(path<optim::Sgd>(rule, 10, 1e9), expected(10, sgd_formula(0.125, 0.5, 0, false)), 1e-12);
}

// A rule of a user's own, on a large odd size so that packs, tails and threads all take part.
struct SignRule {
  static constexpr std::string_view name = "sign";
  static constexpr int states = 0;
  float lr = 0.1f;
  template <class S> void operator()(S& p, S g) const {
    p = p - S(lr) * select(g > S(0), S(1), select(g < S(0), S(-1), S(0)));
  }
};

template <AnyTensor T> struct Pair { T a, b; };

TEST(Optimizer, TellsTheNormBeforeClipping) {
  Parameter model{GD(D::from_host(std::array{3.0, -4.0}, {2})).track()};
  optim::Sgd sgd{model, {.lr = 0}};
  const auto step = [&] {
    Tape<D> tape;
    tape.backward(sum(square(model.p)) * 0.5);
    sgd.step();
  };
  step();
  EXPECT_EQ(sgd.gradient_norm(), 0) << "nothing is clipped, so nobody needs the norm";
  sgd.set_clip_norm(1);
  step();
  EXPECT_EQ(sgd.gradient_norm(), 5);
}

TEST(Optimizer, CountsAStepThatIsDoneElsewhere) {
  Parameter model{GD(D::ones({2})).track()}, other{GD(D::ones({2})).track()};
  optim::Adam adam{model}, advanced{other};
  for (int i = 0; i < 3; ++i) {
    Tape<D> tape;
    tape.backward(sum(model.p));
    adam.step();
    advanced.advance();
    EXPECT_EQ(advanced.rule().step_size, adam.rule().step_size);
  }
  EXPECT_EQ(advanced.steps(), 3);
  EXPECT_EQ(other.p.to_host(), std::vector(2, 1.0));
}

TEST(Optimizer, TakesARuleOfTheUsersOwn) {
  using G = Grad<CpuArray>;
  constexpr std::int64_t n = 100003;
  Rng rng(1);
  const auto signs = CpuArray::normal({n}, 0, 1, rng);
  Pair<G> model{G(CpuArray::zeros({n})).track(), G(CpuArray::zeros({3})).track()};
  optim::RuleOptimizer<SignRule> optimizer(model);
  Tape<CpuArray> tape;
  tape.backward(sum(model.a * signs) - sum(model.b));
  optimizer.step();
  const auto moved = model.a.to_host(), direction = signs.to_host();
  for (std::size_t i = 0; i < moved.size(); ++i) ASSERT_EQ(moved[i], direction[i] > 0 ? -0.1f : 0.1f) << i;
  EXPECT_EQ(model.b.to_host(), std::vector<float>(3, 0.1f));
}

TEST(Optimizer, UsesGradientsUpAndSkipsWhatHasNone) {
  using G = Grad<CpuArray>;
  Pair<G> model{G(CpuArray::ones({2})).track(), G(CpuArray::ones({2})).track()};
  optim::Sgd sgd(model, {.lr = 1, .momentum = 0.9f});
  EXPECT_THROW(sgd.step(), Error) << "no gradient has been computed";
  {
    Tape<CpuArray> tape;
    tape.backward(sum(model.a));
    sgd.step();
  }
  EXPECT_FALSE(model.a.has_grad());
  EXPECT_EQ(model.a.to_host(), std::vector<float>(2, 0));
  EXPECT_EQ(model.b.to_host(), std::vector<float>(2, 1));
  EXPECT_EQ(sgd.steps(), 1);
}

TEST(Optimizer, RejectsWhatCannotBeTrained) {
  using G = Grad<CpuArray>;
  Pair<G> constants{G(CpuArray::ones({2})), G(CpuArray::ones({2}))};
  EXPECT_THROW(optim::Sgd(constants, {.lr = 1}), Error);
  Pair<G> model{G(CpuArray::ones({2})).track(), G(CpuArray::ones({2})).track()};
  optim::Sgd sgd(model);
  EXPECT_THROW(sgd.set_clip_norm(-1), Error);
  EXPECT_THROW(sgd.set_clip_norm(std::nan("")), Error);
}

TEST(Optimizer, UpdatesInPlaceOnlyWhatNobodyShares) {
  using G = Grad<CpuArray>;
  Pair<G> model{G(CpuArray::ones({2})).track(), G(CpuArray::ones({2})).track()};
  const CpuArray before = model.a.value();
  const float* const b = model.b.value().data();
  optim::Sgd sgd(model, {.lr = 1});
  {
    Tape<CpuArray> tape;
    tape.backward(sum(model.a) + sum(model.b));
    sgd.step();
  }
  EXPECT_EQ(before.to_host(), std::vector<float>(2, 1));
  EXPECT_EQ(model.a.to_host(), std::vector<float>(2, 0));
  EXPECT_EQ(model.b.value().data(), b);
}

TEST(Optimizer, SetsTheLearningRate) {
  Parameter model{GD(D::ones({1})).track()};
  optim::Adam adam(model, {.lr = 0.5});
  EXPECT_EQ(adam.learning_rate(), 0.5);
  adam.set_learning_rate(0.25);
  EXPECT_EQ(adam.rule().lr, 0.25);
}

TEST(Schedule, Steps) {
  const optim::StepSchedule schedule{0.8, 5, 0.5};
  EXPECT_DOUBLE_EQ(schedule(0), 0.8);
  EXPECT_DOUBLE_EQ(schedule(4), 0.8);
  EXPECT_DOUBLE_EQ(schedule(5), 0.4);
  EXPECT_DOUBLE_EQ(schedule(12), 0.2);
}

TEST(Schedule, CosineWithWarmup) {
  const optim::CosineSchedule schedule{1.0, 100, 0.1, 10};
  EXPECT_DOUBLE_EQ(schedule(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule(9), 1.0);
  EXPECT_DOUBLE_EQ(schedule(10), 1.0);
  EXPECT_DOUBLE_EQ(schedule(55), 0.55);
  EXPECT_NEAR(schedule(100), 0.1, 1e-12);
  EXPECT_NEAR(schedule(500), 0.1, 1e-12);
}

// A large tensor, a small one and an empty one, as a perceptron has them.
TEST(Update, GivesEachThreadAnEqualShareOfAFewTensors) {
  std::vector<CpuArray> tensors;
  for (const std::int64_t size : {100'352, 128, 0, 8'192, 640}) tensors.push_back(CpuArray::zeros({size}));
  std::vector<optim::UpdateItem<CpuArray, 0>> items;
  for (auto& tensor : tensors) items.push_back({&tensor, &tensor, {}});
  const auto blocks = cpu::split_into_blocks(std::span<const optim::UpdateItem<CpuArray, 0>>(items));
  const std::int64_t total = 100'352 + 128 + 8'192 + 640;
  ASSERT_EQ(cpu::element_count(blocks), total);
  for (const std::int64_t parts : {1, 2, 3, 16}) {
    std::size_t k = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      ASSERT_EQ(cpu::first_block(blocks, part, parts), k);
      std::int64_t share = 0;
      for (const auto stop = cpu::first_block(blocks, part + 1, parts); k < stop; ++k)
        share += blocks[k].end - blocks[k].begin;
      EXPECT_NEAR(static_cast<double>(share), static_cast<double>(total) / static_cast<double>(parts),
                  cpu::default_grain / 8);
    }
    EXPECT_EQ(k, blocks.size());
  }
  EXPECT_EQ(cpu::first_block({}, 1, 2), 0u);
}

}  // namespace
