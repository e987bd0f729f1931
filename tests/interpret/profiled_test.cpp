// What is booked for each operator: calls, operations, bytes, by name and by shape.
#include <gtest/gtest.h>

#include <taut/taut.hpp>

#include <thread>

using namespace taut;
using P = Profiled<CpuArray>;
using G = Grad<P>;

namespace {

/// Expects these calls, operations and bytes of an operator since the last reset.
void expect_entry(const std::string& name, std::int64_t calls, std::int64_t flops, std::int64_t bytes) {
  const auto entries = profile_entries();
  ASSERT_TRUE(entries.contains(name)) << name;
  const auto& entry = entries.at(name);
  EXPECT_EQ(entry.calls, calls) << name;
  EXPECT_EQ(entry.flops, flops) << name;
  EXPECT_EQ(entry.bytes, bytes) << name;
  EXPECT_GT(entry.seconds, 0) << name;
}

TEST(Profiled, BooksAWholeTrainingStep) {
  Rng rng{1};
  nn::Linear<G> layer = nn::Linear<G>::make(16, 4, rng);
  optim::Sgd sgd(layer, {.lr = 0.1, .momentum = 0.9});
  sgd.set_clip_norm(1);
  const P x = CpuArray::ones({8, 16});
  const auto labels = CpuArray::Index::zeros({8});
  reset_profile();
  {
    Tape<P> tape;
    tape.backward(cross_entropy(relu(layer(x)), labels));
    sgd.step();
  }
  expect_entry("linear", 1, (2 * 16 + 1) * 8 * 4, 4 * (8 * 16 + 4 * 16 + 4 + 8 * 4));
  expect_entry("relu", 2, 2 * 32, 4 * (2 * 32 + 3 * 32));
  expect_entry("cross_entropy", 1, 5 * 32, 4 * 32 + 8 * 8 + 4);
  expect_entry("cross_entropy_gradient", 1, 6 * 32, 4 + 2 * 4 * 32 + 8 * 8);
  expect_entry("matmul", 1, 2 * 4 * 16 * 8, 4 * (8 * 4 + 8 * 16 + 4 * 16));
  expect_entry("sum_to", 1, 32, 4 * (32 + 4));
  // 4 · 16 + 4 parameters: read and written with their momentum, and the gradient read.
  expect_entry("update.sgd", 1, 0, 4 * 5 * 68);
  expect_entry("update.gradient_norm", 1, 2 * 68, 4 * 68);
  EXPECT_EQ(profile_entries().size(), 8u);
}

TEST(Profiled, FindsTheProfilerOfAnOptimizerInsideOtherInterpretations) {
  using T = Checked<Profiled<BasicCpuArray<double>>>;
  struct Scale {
    Grad<T> factor;
  };
  Scale model{Grad<T>(T::ones({3})).track()};
  optim::Adam adam(model, {});
  Tape<T> tape;
  tape.backward(sum(square(model.factor)));
  reset_profile();
  adam.step();
  expect_entry("update.adam", 1, 0, 8 * 7 * 3);
  EXPECT_EQ(profile_entries().size(), 1u);
}

TEST(Profiled, CountsBytesByTheTypesOfElements) {
  reset_profile();
  exp(Profiled<BasicCpuArray<double>>::ones({3, 5}));
  expect_entry("exp", 1, 15, 8 * 30);
  argmax(P::ones({3, 5}));
  expect_entry("argmax", 1, 15, 4 * 15 + 8 * 3);
}

TEST(Profiled, CountsNoBytesOfOperandsThatDerivativesDoNotRead) {
  const auto a = G(P::ones({10})).track(), b = G(P::ones({10})).track();
  Tape<P> tape;
  const auto loss = sum(a * b);
  reset_profile();
  tape.backward(loss);
  expect_entry("mul", 2, 20, 2 * 4 * 30);
}

TEST(Profiled, TellsShapesApartAndWhatElseChangesTheWork) {
  reset_profile();
  exp(P::ones({2, 3}));
  exp(P::ones({3, 2}));
  exp(P::ones({3, 2}));
  const P images = CpuArray::ones({1, 1, 9, 9}), kernels = CpuArray::ones({1, 1, 3, 3});
  conv2d(images, kernels);
  conv2d(images, kernels, {.stride = 2});
  EXPECT_EQ(profile_entries().size(), 2u);
  const auto entries = profile_entries_by_shape();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end(),
                             [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
  const auto find = [&](std::string_view name, const Shape& shape, std::int64_t flops) {
    for (const auto& entry : entries)
      if (entry.name == name && entry.operands.at(0) == shape && entry.flops == flops) return entry;
    ADD_FAILURE() << name << shape;
    return ShapedProfileEntry{};
  };
  EXPECT_EQ(find("exp", {2, 3}, 6).calls, 1);
  EXPECT_EQ(find("exp", {3, 2}, 12).calls, 2);
  EXPECT_EQ(find("conv2d", {1, 1, 9, 9}, 2 * 49 * 9).operands,
            (std::vector<Shape>{{1, 1, 9, 9}, {1, 1, 3, 3}}));
  EXPECT_EQ(find("conv2d", {1, 1, 9, 9}, 2 * 16 * 9).calls, 1);
}

TEST(Profiled, StartsAnewAfterAReset) {
  exp(P::ones({2}));
  reset_profile();
  EXPECT_TRUE(profile_entries().empty());
  EXPECT_TRUE(profile_entries_by_shape().empty());
  exp(P::ones({2}));
  expect_entry("exp", 1, 2, 16);
}

TEST(Profiled, BooksNothingOfWhatFails) {
  reset_profile();
  const P a = CpuArray::ones({2, 3});
  EXPECT_THROW(matmul(a, a), ShapeError);
  EXPECT_THROW(conv2d(a, a), ShapeError);
  EXPECT_THROW(pick(a, CpuArray::Index::full({2}, 7)), Error);
  EXPECT_TRUE(profile_entries().empty());
}

TEST(Profiled, AddsUpWhatThreadsDo) {
  reset_profile();
  const auto work = [](std::int64_t size) {
    for (int i = 0; i < 500; ++i) {
      const P x = CpuArray::ones({size});
      exp(x);
      if (i % 100 == 0) profile_report();
    }
  };
  std::thread other(work, 3);
  work(5);
  other.join();
  expect_entry("exp", 1000, 500 * (3 + 5), 500 * 2 * 4 * (3 + 5));
}

}  // namespace
