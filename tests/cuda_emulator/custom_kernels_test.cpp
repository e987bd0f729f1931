// A functor and an update rule of a user's own: what `map.cuh` and `update.cuh` compile from them computes as
// the CPU does, derivatives included.

#include <gtest/gtest.h>
#include <taut/cpu/cpu.hpp>
#include <taut/cuda/cuda.hpp>
#include <taut/cuda/map.cuh>
#include <taut/cuda/update.cuh>
#include <taut/interpret/grad.hpp>

#include <cmath>
#include <string_view>

namespace taut::test {

/// a x / (1 + |x|) + y
struct ScaledSoftsign : op::Elementwise {
  static constexpr std::string_view name = "scaled_softsign";
  float a = 1;

  template <class S> constexpr S operator()(S x, S y) const {
    using std::abs;
    return S(a) * x / (S(1) + abs(x)) + y;
  }
};

/// p ← p - lr sign(g)
struct SignDescent {
  static constexpr std::string_view name = "sign_descent";
  static constexpr int states = 0;
  double lr = 0.1;

  template <class S> constexpr void operator()(S& p, S g) const {
    p = p - S(lr) * select(g < S(0), S(-1), S(1));
  }
};

}  // namespace taut::test

TAUT_CUDA_MAP(taut::test::ScaledSoftsign, 2)
TAUT_CUDA_UPDATE(taut::test::SignDescent)

namespace taut::test {
namespace {

/// The first and second derivatives of the functor's sum, squared, by x.
template <class T>
std::vector<std::vector<typename T::Element>> derivatives(const std::vector<float>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const std::vector<typename T::Element> elements(values.begin(), values.end());
  Grad<T> x = Grad<T>(T::from_host(elements, shape)).track();
  const auto half = static_cast<typename T::Element>(0.5f);
  Tape<T> outer;
  Grad<T> slope;
  {
    Grad<Grad<T>> inner_x = Grad<Grad<T>>(x).track();
    Tape<Grad<T>> inner;
    const auto y = map(ScaledSoftsign{{}, 3}, inner_x, Grad<Grad<T>>(T::full({}, half)));
    inner.backward(sum(square(y)));
    slope = inner_x.grad();
  }
  outer.backward(sum(slope));
  return {slope.value().to_host(), x.grad().to_host()};
}

/// That they are those of the CPU on E, up to rounding.
template <class E> void expect_derivatives(float tolerance) {
  std::vector<float> values;
  for (int i = -50; i < 51; ++i) values.push_back(bfloat16(0.1f * static_cast<float>(i) + 0.05f));
  const auto got = derivatives<BasicCudaTensor<E>>(values);
  const auto expected = derivatives<CpuArray>(values);
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(float(got[k][i]), expected[k][i], tolerance * (1 + std::abs(expected[k][i])))
          << k << ", at " << values[i];
}

TEST(CustomKernels, AreDifferentiatedTwice) {
  expect_derivatives<float>(1e-5f);
  expect_derivatives<bfloat16>(0x1p-6f);
}

TEST(CustomKernels, Update) {
  auto p = CudaTensor::ones({1000});
  const auto g = CudaTensor::full({1000}, -2.0f);
  const optim::UpdateItem<CudaTensor, 0> item{&p, &g, {}};
  apply_update(SignDescent{.lr = 0.5}, 1, std::span(&item, 1));
  EXPECT_EQ(p.to_host(), std::vector<float>(1000, 1.5f));
}

}  // namespace
}  // namespace taut::test
