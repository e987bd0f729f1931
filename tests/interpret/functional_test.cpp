#include <gtest/gtest.h>

#include <cmath>
#include <taut/taut.hpp>

using namespace taut;
using D = BasicCpuArray<double>;

namespace {

const auto cube = [](const auto& x) { return sum(x * x * x); };

TEST(Functional, GradOfOneArgument) {
  EXPECT_DOUBLE_EQ(grad(cube)(D::full({1}, 2)).item(), 12);
  const auto [value, gradient] = value_and_grad(cube)(D::from_host(std::array{1., 2.}, {2}));
  EXPECT_DOUBLE_EQ(value.item(), 9);
  EXPECT_EQ(gradient.to_host(), (std::vector<double>{3, 12}));
}

TEST(Functional, GradOfSeveralArguments) {
  const auto f = [](const auto& x, const auto& y) { return sum(x * y * y); };
  const auto [dx, dy] = grad(f)(D::full({1}, 2), D::full({1}, 3));
  EXPECT_DOUBLE_EQ(dx.item(), 9);
  EXPECT_DOUBLE_EQ(dy.item(), 12);
}

TEST(Functional, ThirdDerivative) {
  const auto d1 = [](const auto& x) { return sum(grad(cube)(x)); };
  const auto d2 = [&](const auto& x) { return sum(grad(d1)(x)); };
  EXPECT_DOUBLE_EQ(d2(D::full({1}, 2)).item(), 12);
  EXPECT_DOUBLE_EQ(grad(d2)(D::full({1}, 2)).item(), 6);
}

TEST(Functional, TheGradientByAnUnusedArgumentIsZero) {
  const auto f = [](const auto& x, const auto& y) { return sum(y * y) + 0.0 * sum(y), sum(x); };
  const auto [dx, dy] = grad(f)(D::full({2}, 2), D::full({3}, 3));
  EXPECT_EQ(dx.to_host(), std::vector<double>(2, 1));
  EXPECT_EQ(dy.to_host(), std::vector<double>(3, 0));
  const auto linear = [](const auto& x) { return sum(x); };
  EXPECT_EQ(grad([&](const auto& x) { return sum(grad(linear)(x)); })(D::full({2}, 2)).to_host(),
            std::vector<double>(2, 0));
}

TEST(Functional, ConstantsFromOutsideMixIn) {
  const auto c = D::full({1}, 7);
  const auto f = [&](const auto& x) { return sum(c * x * x); };
  EXPECT_DOUBLE_EQ(grad(f)(D::full({1}, 2)).item(), 28);
  EXPECT_DOUBLE_EQ(grad([&](const auto& x) { return sum(grad(f)(x)); })(D::full({1}, 2)).item(), 14);
}

TEST(Functional, HessianVectorProduct) {
  // f = Σ xᵢ³ + x₀ x₁: H = [[6x₀, 1], [1, 6x₁]].
  const auto f = [](const auto& x) { return sum(x * x * x) + sum(slice(x, 0, 0, 1) * slice(x, 0, 1, 2)); };
  const auto hv =
      hessian_vector_product(f, D::from_host(std::array{1., 2.}, {2}), D::from_host(std::array{3., 5.}, {2}));
  EXPECT_EQ(hv.to_host(), (std::vector<double>{6 * 3 + 5, 3 + 12 * 5}));
}

TEST(HessianVectorProduct, RefusesAVectorOfAnotherShape) {
  const auto f = [](const auto& x) { return sum(x * x); };
  EXPECT_THROW(hessian_vector_product(f, D::ones({2, 3}), D::ones({3})), ShapeError);
}

TEST(Functional, TheGradientOfTheIdentityIsOne) {
  EXPECT_EQ(grad([](const auto& x) { return x; })(D::full({1}, 3)).item(), 1);
  const auto [dx, dy] = grad([](const auto& x, const auto&) { return x; })(D::ones({1}), D::ones({1}));
  EXPECT_EQ(dx.item(), 1);
  EXPECT_EQ(dy.item(), 0);
}

TEST(Functional, LeavesOtherLeavesAlone) {
  const auto w = Grad<D>(D::full({1}, 5)).track();
  {
    Tape<D> tape;
    tape.backward(w * 2.0);
  }
  EXPECT_DOUBLE_EQ(grad([&](const auto& x) { return sum(w * x * x); })(D::full({1}, 3)).item(), 30);
  EXPECT_DOUBLE_EQ(w.grad().item(), 2) << "a gradient that waits for the optimizer is not touched";
  const auto outer = grad([&](const auto& x) {
    grad([&](const auto& z) { return sum(z * x.value()); })(D::full({1}, 2));
    return 0.0 * sum(x);
  });
  EXPECT_DOUBLE_EQ(outer(D::full({1}, 3)).item(), 0);
}

TEST(Functional, RejectsANonScalarResult) {
  EXPECT_THROW(grad([](const auto& x) { return x * x; })(D::ones({2})), ShapeError);
}

TEST(Functional, WorksOnOtherInterpretations) {
  EXPECT_FLOAT_EQ(grad(cube)(Checked<CpuArray>(CpuArray::full({1}, 2))).item(), 12);
}

}  // namespace
