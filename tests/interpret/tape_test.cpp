#include <gtest/gtest.h>

#include <taut/taut.hpp>
#include <thread>

using namespace taut;
using G = Grad<CpuArray>;
using D = BasicCpuArray<double>;

namespace {

G leaf(const std::vector<float>& values) {
  return G(CpuArray::from_host(values, {static_cast<std::int64_t>(values.size())})).track();
}

std::vector<float> trained_losses(int steps, std::uint64_t seed) {
  Rng rng(seed);
  auto model = nn::Mlp<G>::make({8, 16, 4}, rng);
  const auto x = CpuArray::normal({32, 8}, 0, 1, rng);
  std::vector<std::int64_t> classes(32);
  for (auto& label : classes) label = static_cast<std::int64_t>(rng.integer(4));
  const auto labels = CpuArray::Index::from_host(classes, {32});
  optim::Sgd sgd(model, {.lr = 0.1f, .momentum = 0.9f});
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    Tape<CpuArray> tape;
    const auto loss = cross_entropy(model(x), labels);
    losses.push_back(loss.item());
    tape.backward(loss);
    sgd.step();
  }
  return losses;
}

// A gradient buffer that two operands shared and one then added into would give b more than 1/n.
TEST(Tape, NeverAddsIntoASharedGradient) {
  const auto a = leaf({1, 2, 3, 4}), b = leaf({5, 6, 7, 8});
  Tape<CpuArray> tape;
  tape.backward(mean((a + b) + a * a));
  EXPECT_EQ(b.grad().to_host(), std::vector<float>(4, 0.25f));
  EXPECT_EQ(a.grad().to_host(), (std::vector<float>{0.75f, 1.25f, 1.75f, 2.25f}));
}

TEST(Tape, AddsContributionsOfAllUses) {
  const auto x = leaf({3});
  Tape<CpuArray> tape;
  tape.backward(sum(x * x + x + x * 2.0f));
  EXPECT_FLOAT_EQ(x.grad().item(), 9);
}

TEST(Tape, PlaysALongChainWithoutRecursion) {
  const auto x = leaf({1});
  Tape<CpuArray> tape;
  G y = x;
  for (int i = 0; i < 100000; ++i) y = y + x;
  EXPECT_EQ(tape.size(), 100000u);
  tape.backward(y);
  EXPECT_FLOAT_EQ(x.grad().item(), 100001);
}

TEST(Tape, DropsALongChainWithoutRecursion) {
  const auto x = leaf({1});
  {
    Tape<CpuArray> tape;
    G y = x;
    for (int i = 0; i < 100000; ++i) y = tanh(y);
  }
  EXPECT_FALSE(x.has_grad());
}

TEST(Tape, DoesNotGrowMemoryWithoutATape) {
  Rng rng(1);
  auto model = nn::Mlp<G>::make({64, 64, 8}, rng);
  const G x = CpuArray::normal({16, 64}, 0, 1, rng);
  for (int i = 0; i < 2; ++i) (void)model(x);  // the second time packs the weights
  const auto before = cpu::Pool::live_bytes();
  G kept;
  for (int i = 0; i < 1000; ++i) kept = model(x);
  EXPECT_FALSE(kept.tracked());
  EXPECT_LE(cpu::Pool::live_bytes(), before + 4096);
}

TEST(Tape, FreesMemoryWhileItPlays) {
  const auto x = G(CpuArray::ones({1 << 16})).track();
  Tape<CpuArray> tape;
  const auto before = cpu::Pool::live_bytes();
  G y = x;
  for (int i = 0; i < 20; ++i) y = sin(y);
  const auto y_sum = sum(y);
  y = G();
  EXPECT_GT(cpu::Pool::live_bytes(), before + (18 << 18));
  tape.backward(y_sum);
  EXPECT_LE(cpu::Pool::live_bytes(), before + (2 << 18));  // the leaf's gradient, and small change
}

TEST(Tape, SavesOnlyWhatRulesNeed) {
  const auto x = G(CpuArray::ones({1 << 16})).track();
  const auto before = cpu::Pool::live_bytes();
  Tape<CpuArray> tape;
  G y = x + 1.0f;
  for (int i = 0; i < 20; ++i) y = (y + x) * 0.5f - 1.0f;  // linear: nothing to save
  EXPECT_LE(cpu::Pool::live_bytes(), before + (2 << 18));
  tape.backward(sum(y));
  EXPECT_NEAR(x.grad().to_host()[0], 1, 1e-5);
}

TEST(Tape, TwoThreadsTrainAsOne) {
  const auto expected_a = trained_losses(50, 1), expected_b = trained_losses(50, 2);
  std::vector<float> a, b;
  std::thread first([&] { a = trained_losses(50, 1); });
  std::thread second([&] { b = trained_losses(50, 2); });
  first.join();
  second.join();
  EXPECT_EQ(a, expected_a);
  EXPECT_EQ(b, expected_b);
  EXPECT_LT(a.back(), 0.7f * a.front());
}

TEST(Tape, SameSeedSameLosses) { EXPECT_EQ(trained_losses(50, 7), trained_losses(50, 7)); }

TEST(Tape, RecordsOnlyInScope) {
  const auto x = leaf({2});
  const auto outside = x * x;
  EXPECT_FALSE(outside.tracked());
  Tape<CpuArray> tape;
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_TRUE((x * x).tracked());
  EXPECT_EQ(tape.size(), 1u);
  (void)(G(CpuArray::ones({1})) * 3.0f);  // a constant records nothing
  EXPECT_EQ(tape.size(), 1u);
}

TEST(Tape, RejectsWhatItDidNotRecord) {
  const auto x = leaf({2});
  const auto outside = x * x;
  Tape<CpuArray> tape;
  EXPECT_THROW(tape.backward(outside), Error);
  EXPECT_THROW(tape.backward(x), Error);
  EXPECT_THROW(tape.backward(G(CpuArray::ones({1}))), Error);
  const auto y = sum(x * x);
  tape.backward(y);
  EXPECT_THROW(tape.backward(y), Error) << "each recording is played once";
}

TEST(Tape, RejectsANonScalarWithoutCotangent) {
  const auto x = leaf({1, 2});
  Tape<CpuArray> tape;
  const auto y = x * x;
  EXPECT_THROW(tape.backward(y), ShapeError);
  EXPECT_THROW(tape.backward(y, CpuArray::ones({3})), ShapeError);
  tape.backward(y, CpuArray::from_host(std::array{1.f, 10.f}, {2}));
  EXPECT_EQ(x.grad().to_host(), (std::vector<float>{2, 40}));
}

TEST(Tape, BackwardOnTheValueFindsTheInnermostTape) {
  const auto x = leaf({3});
  {
    Tape<CpuArray> tape;
    (x * x).backward();
    EXPECT_FLOAT_EQ(x.grad().item(), 6);
  }
  EXPECT_THROW((x * x).backward(), Error);
}

TEST(Tape, OneTapeAccumulatesAndTheNextReplaces) {
  const auto x = leaf({3});
  {
    Tape<CpuArray> tape;
    tape.backward(x * x);
    tape.backward(x * x);
    EXPECT_FLOAT_EQ(x.grad().item(), 12);
  }
  Tape<CpuArray> tape;
  tape.backward(x * 2.0f);
  EXPECT_FLOAT_EQ(x.grad().item(), 2);
}

TEST(Tape, OnlyLeavesKeepTheirGradient) {
  const auto x = leaf({3});
  Tape<CpuArray> tape;
  const auto y = x * x;
  tape.backward(y * 2.0f);
  EXPECT_FALSE(y.has_grad());
  EXPECT_THROW(y.grad(), Error);
  EXPECT_THROW(leaf({1}).grad(), Error);
}

TEST(Tape, AValueOfAnEarlierTapeIsAConstant) {
  const auto x = leaf({3});
  G state = x;
  for (int i = 0; i < 3; ++i) {
    Tape<CpuArray> tape;
    state = state * x;
    tape.backward(state);
  }
  EXPECT_FLOAT_EQ(x.grad().item(), 27);  // the last step alone: state 27 times x
}

TEST(Tape, AnInnerTapeOfTheSameTypeRecords) {
  const auto x = leaf({3});
  Tape<CpuArray> outer;
  const auto y = x * x;
  {
    Tape<CpuArray> inner;
    inner.backward(x * 5.0f);
    EXPECT_FLOAT_EQ(x.grad().item(), 5);
  }
  EXPECT_EQ(outer.size(), 1u);
  outer.backward(y);
  EXPECT_FLOAT_EQ(x.grad().item(), 6);
}

TEST(Tape, DetachStopsTheGradient) {
  const auto x = leaf({3});
  Tape<CpuArray> tape;
  tape.backward(x * x.detach());
  EXPECT_FLOAT_EQ(x.grad().item(), 3);
}

TEST(Tape, PlainTensorsMixAsConstants) {
  const auto x = leaf({3});
  const auto c = CpuArray::full({1}, 4);
  Tape<CpuArray> tape;
  tape.backward(sum(c * x + x * c - c));
  EXPECT_FLOAT_EQ(x.grad().item(), 8);
}

TEST(Tape, NestsForSecondDerivatives) {
  // f = x³ y: ∂f/∂x = 3x²y, ∂²f/∂x∂y = 3x², ∂²f/∂x² = 6xy.
  using GD = Grad<D>;
  const GD x = GD(D::full({1}, 2)).track(), y = GD(D::full({1}, 5)).track();
  const auto xx = Grad<GD>(x).track(), yy = Grad<GD>(y).track();
  Tape<D> outer;
  GD dx;
  {
    Tape<GD> inner;
    inner.backward(sum(xx * xx * xx * yy));
    dx = xx.grad();
  }
  EXPECT_DOUBLE_EQ(dx.item(), 60);
  outer.backward(sum(dx));
  EXPECT_DOUBLE_EQ(x.grad().item(), 60);
  EXPECT_DOUBLE_EQ(y.grad().item(), 12);
}

TEST(Tape, WhatAnOuterTapeRecordedIsAConstantToAnInnerOne) {
  const auto x = leaf({3}), y = leaf({2});
  Tape<CpuArray> outer;
  const auto z = x * x;
  {
    Tape<CpuArray> inner;
    inner.backward(z * y);
    EXPECT_FLOAT_EQ(y.grad().item(), 9);
    EXPECT_FALSE(x.has_grad());
  }
  outer.backward(z);
  EXPECT_FLOAT_EQ(x.grad().item(), 6);
}

TEST(Tape, SurvivesAnExceptionInTheForwardPass) {
  const auto x = leaf({3});
  const auto labels = CpuArray::Index::from_host(std::array<std::int64_t, 1>{7}, {1});
  Tape<CpuArray> tape;
  EXPECT_THROW(cross_entropy(reshape(x, {1, 1}), labels), Error);
  tape.backward(sum(x * x));
  EXPECT_FLOAT_EQ(x.grad().item(), 6);
}

struct Fragile {
  static constexpr std::string_view name = "fragile";
  constexpr Shape shape(const Shape& x) const { return x; }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T&) const {
    return [](const T&) -> T { throw Error("fragile: broken rule"); };
  }
};

CpuArray eval(const Fragile&, const CpuArray& x) { return x; }

TEST(Tape, SurvivesAnExceptionInARule) {
  const auto x = leaf({3});
  Tape<CpuArray> tape;
  EXPECT_THROW(tape.backward(x * 5.0f + eval(Fragile{}, x) * x), Error);
  EXPECT_EQ(tape.size(), 0u);
  tape.backward(x * x);
  EXPECT_FLOAT_EQ(x.grad().item(), 6) << "what had arrived before the failure is replaced";
}

}  // namespace
