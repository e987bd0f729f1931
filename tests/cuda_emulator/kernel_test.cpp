// What kernels have in common, and how many of them are launched.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/cuda/kernel/divide.cuh>
#include <taut/optim/sgd_rule.hpp>

#include <cmath>
#include <span>
#include <vector>

namespace taut::test {
namespace {

/// How much f() puts into the current stream, which does not run: its temporary memory is gone by then.
template <class F> std::size_t launches(const F& f) {
  emulator::begin_capture(cuda::current_stream());
  f();
  return emulator::end_capture(cuda::current_stream()).size();
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
  (void)norm.clip(all, 1);
  EXPECT_NEAR(norm.value(), std::sqrt(1200.0), 1e-4);
}

TEST(CudaUpdate, TakesTheNormOfManyGradientsInFewLaunches) {
  expect_a_norm_in_few_launches<float>();
  expect_a_norm_in_few_launches<bfloat16>();
}

TEST(Divider, DividesAsTheProcessorDoes) {
  constexpr std::uint32_t limit = std::uint32_t{1} << 31;
  std::vector<std::uint32_t> divisors;
  for (std::uint32_t d = 1; d <= 1000; ++d) divisors.push_back(d);
  for (int bit = 10; bit < 32; ++bit)
    for (const std::uint32_t d : {(1u << bit) - 1, 1u << bit, (1u << bit) + 1, (3u << (bit - 1)) + 5})
      if (d <= limit) divisors.push_back(d);
  for (const std::uint32_t d : divisors) {
    const cuda::Divider divider(d);
    ASSERT_EQ(divider.divisor, d);
    const auto check = [&](std::uint64_t n) {
      if (n >= limit) return;
      ASSERT_EQ(divider.divide(static_cast<std::uint32_t>(n)), n / d) << n << " / " << d;
    };
    for (std::uint32_t n = 0; n < 100; ++n) check(n), check(limit - 1 - n);
    // Around multiples of the divisor, where a quotient that is a little off shows.
    for (std::uint64_t k = 1; k * d < limit; k += 1 + k / 8)
      for (const std::uint64_t n : {k * d - 1, k * d, k * d + 1}) check(n);
    const std::uint64_t last = std::uint64_t{limit - 1} / d * d;
    check(last), check(last - 1);
  }
}

TEST(LongDivider, DividesNumbersOfAnySize) {
  const std::int64_t limit = std::int64_t{1} << 31;
  for (const std::int64_t d :
       {std::int64_t{1}, std::int64_t{7}, limit - 1, limit, limit + 1, limit * limit - 1})
    for (const std::int64_t n : {std::int64_t{0}, d - 1, d, limit - 1, limit, limit + 1, limit * limit + d})
      EXPECT_EQ(cuda::LongDivider(d).divide(n), n / d) << n << " / " << d;
}

/// What is left of the parts of a plan: how often each place of the result is in one.
std::vector<int> covered_by_parts(const cuda::MapPlan& plan, std::int64_t most) {
  std::vector<int> times(static_cast<std::size_t>(plan.size()));
  const auto count = [&](const cuda::MapPlan& part) {
    EXPECT_LE(part.size(), most);
    for (std::int64_t i = 0; i < part.size(); ++i) {
      ++times[static_cast<std::size_t>(part.first + i)];
      // The operand lies as the result does, but from its 7th element on and with all strides doubled.
      std::int64_t at = part.offsets[0], rest = i;
      for (int d = 0; d < part.rank; rest /= part.extents[d++])
        at += rest % part.extents[d] * part.strides[d][0];
      EXPECT_EQ(at, 7 + 2 * (part.first + i));
    }
  };
  cuda::for_each_part(plan, count, most);
  return times;
}

TEST(MapPlan, IsCutIntoPartsOfAtMostSoManyElements) {
  cuda::MapPlan plan;
  plan.offsets[0] = 7;
  plan.rank = 3;
  for (int d = 0, stride = 2; d < 3; ++d) {
    plan.extents[d] = 3 + 2 * d;
    plan.strides[d][0] = stride;
    stride *= 3 + 2 * d;
  }
  for (std::int64_t most = 1; most <= plan.size() + 1; ++most)
    EXPECT_EQ(covered_by_parts(plan, most), std::vector<int>(3 * 5 * 7, 1)) << most;
}

TEST(MapPlan, OfNothingHasNoParts) {
  cuda::MapPlan plan;
  plan.extents[0] = 0;
  cuda::for_each_part(
      plan, [](const cuda::MapPlan&) { ADD_FAILURE(); }, 4);
}

}  // namespace
}  // namespace taut::test
