// An operator of somebody else's on Taut's arrays, on every interpretation, and on the toy backend.

#include "cumsum.hpp"

#include <gtest/gtest.h>
#include <taut/taut.hpp>

#include "toy_backend.hpp"

namespace mine {

// A row of ours in the column of others: the toy backend needs a kernel of its own, and nothing else.
inline toy::Array eval(const Cumsum& op, const toy::Array& x) {
  toy::Array out = x.copy(op.shape(x.shape()));
  const int last = x.shape().rank() - 1;
  const std::int64_t n = x.shape()[last];
  toy::for_each(x.shape(), [&](const toy::PerAxis& at) {
    toy::PerAxis earlier = at, here = at;
    if (op.reverse) here[last] = n - 1 - at[last];
    earlier[last] = here[last] + (op.reverse ? 1 : -1);
    if (at[last] > 0) out[here] += out[earlier];
  });
  return out;
}

namespace {

using Double = taut::BasicCpuArray<double>;

template <class T> std::vector<typename T::Element> one_to_six(bool reverse) {
  const typename T::Element values[] = {1, 2, 3, 4, 5, 6};
  return cumsum(T::from_host(values, {2, 3}), reverse).to_host();
}

TEST(Cumsum, AddsUpEachRow) {
  EXPECT_EQ(one_to_six<taut::CpuArray>(false), (std::vector<float>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(one_to_six<taut::CpuArray>(true), (std::vector<float>{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(one_to_six<toy::Array>(false), (std::vector<double>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(one_to_six<toy::Array>(true), (std::vector<double>{6, 5, 3, 15, 11, 6}));
}

TEST(Cumsum, TakesEmptyAndLargeOperands) {
  EXPECT_EQ(cumsum(Double::ones({3, 0})).shape(), (taut::Shape{3, 0}));
  EXPECT_EQ(cumsum(Double::ones({0, 3})).shape(), (taut::Shape{0, 3}));
  EXPECT_EQ(sum(cumsum(Double::ones({1000, 100}))).item(), 1000 * 5050);
}

TEST(Cumsum, ChecksShapesAtRunTimeAndAtCompileTime) {
  EXPECT_THROW(cumsum(Double::ones({})), taut::ShapeError);
  static_assert(cumsum(taut::ShapeTensor{{4, 5}}).shape() == taut::Shape{4, 5});
}

/// Σ sin(cumsum(x)) cumsum_reverse(x): curved, so that second derivatives do not vanish.
template <class T> T program(const T& x) { return sum(sin(cumsum(x)) * cumsum(x, true)); }

/// d/dt f(x + t v) at t = 0, by central differences.
template <class F> double difference(const F& f, const Double& x, const Double& v) {
  const double h = 1e-5;
  return (f(x + h * v) - f(x - h * v)) / (2 * h);
}

TEST(Cumsum, HasTheDerivativesOfFiniteDifferences) {
  taut::Rng rng{1};
  const auto x = Double::normal({2, 4}, 0, 1, rng), v = Double::normal({2, 4}, 0, 1, rng);
  const auto f = [](const auto& u) { return program(u); };

  const double slope = sum(taut::grad(f)(x) * v).item();
  EXPECT_NEAR(slope, difference([&](const Double& u) { return f(u).item(); }, x, v), 1e-7);
  EXPECT_GT(std::abs(slope), 1e-2);

  const double curvature = sum(taut::hessian_vector_product(f, x, v) * v).item();
  const auto slope_at = [&](const Double& u) { return sum(taut::grad(f)(u) * v).item(); };
  EXPECT_NEAR(curvature, difference(slope_at, x, v), 1e-7);
  EXPECT_GT(std::abs(curvature), 1e-2);
}

TEST(Cumsum, RunsOnEveryInterpretation) {
  const auto x = taut::CpuArray::ones({2, 3});
  taut::reset_profile();
  cumsum(taut::Profiled<taut::CpuArray>(x));
  EXPECT_EQ(taut::profile_entries().at("cumsum").flops, 6);
  const taut::Typed<taut::CpuArray, taut::Shape{2, 3}> typed{x};
  static_assert(decltype(cumsum(typed))::shape() == taut::Shape{2, 3});
  EXPECT_THROW(cumsum(taut::Checked<taut::CpuArray>(x / 0.0)), taut::Error);
}

}  // namespace
}  // namespace mine
