// How many kernels are launched.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/optim/sgd_rule.hpp>

#include <cmath>
#include <span>
#include <vector>

namespace taut::test {
namespace {

/// How much f() puts into the current stream, which then runs.
template <class F> std::size_t launches(const F& f) {
  emulator::begin_capture(cuda::current_stream());
  f();
  const auto work = emulator::end_capture(cuda::current_stream());
  for (const auto& each : work) each();
  return work.size();
}

template <class E> void expect_a_norm_in_few_launches() {
  using T = BasicCudaTensor<E>;
  struct Parameter {
    T value = T::zeros({3}), gradient = T::full({3}, static_cast<E>(2.0f));
    CudaTensor master = CudaTensor::zeros({3}), momentum = CudaTensor::zeros({3});
  };
  std::vector<Parameter> parameters(100);
  std::vector<optim::UpdateItem<T, 1>> items;
  for (auto& p : parameters) items.push_back({&p.value, &p.gradient, {&p.momentum}, &p.master});
  const std::span<const optim::UpdateItem<T, 1>> all(items);

  optim::GradientNorm<T> norm;
  const auto of_norm = launches([&] { (void)norm.clip(all, 1); });
  const auto of_update = launches([&] { apply_update(optim::SgdRule{}, 1, all); });
  EXPECT_LE(of_norm, of_update) << "the second of the norm's makes the factor";
  EXPECT_NEAR(norm.value(), std::sqrt(1200.0), 1e-4);
}

TEST(CudaUpdate, TakesTheNormOfManyGradientsInFewLaunches) {
  expect_a_norm_in_few_launches<float>();
  expect_a_norm_in_few_launches<bfloat16>();
}

}  // namespace
}  // namespace taut::test
