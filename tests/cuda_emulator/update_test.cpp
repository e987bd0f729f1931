// Optimizers on the device: the same parameters as on the CPU after some steps, in every layout; and in
// bfloat16 the same masters.

#include <gtest/gtest.h>
#include <taut/cpu/cpu.hpp>
#include <taut/cuda/cuda.hpp>
#include <taut/optim/adam_rule.hpp>
#include <taut/optim/sgd_rule.hpp>

#include <cmath>
#include <limits>

namespace taut::test {
namespace {

/// The tensors of one parameter.
template <class T, int States> struct Parameter {
  T value, gradient;
  std::array<Widened<T>, States> state;
  Widened<T> master;
};

using Half = BasicCudaTensor<bfloat16>;

/// More parameters than one launch takes, of sizes around those of vectors and chunks.
std::vector<Shape> shapes() {
  std::vector<Shape> all{{0}, {1}, {3}, {4096}, {4097}, {3, 5, 2, 2}, {20000}, {0, 2}, {8, 3, 3, 3}};
  for (std::int64_t n = 1; n < 180; ++n) all.push_back({n});
  return all;
}

/// Normal numbers that bfloat16 has.
template <class T> T drawn(const Shape& shape, Rng& rng) {
  std::vector<typename T::Element> values;
  for (const float value : CpuArray::normal(shape, 0, 1, rng).to_host())
    values.push_back(static_cast<typename T::Element>(float(bfloat16(value))));
  return T::from_host(values, shape);
}

template <class T, int States> std::vector<Parameter<T, States>> make_parameters(std::uint64_t seed) {
  Rng rng{seed};
  std::vector<Parameter<T, States>> all;
  for (const Shape& shape : shapes()) {
    auto& p = all.emplace_back();
    p.value = drawn<T>(shape, rng);
    p.gradient = drawn<T>(shape, rng);
    p.master = Widened<T>::zeros(shape);
    for (auto& state : p.state) state = Widened<T>::zeros(shape);
  }
  return all;
}

template <class T, int States>
std::vector<optim::UpdateItem<T, States>> items_of(std::vector<Parameter<T, States>>& parameters) {
  std::vector<optim::UpdateItem<T, States>> items;
  for (auto& p : parameters) {
    items.push_back({&p.value, &p.gradient, {}, &p.master});
    for (std::size_t k = 0; k < p.state.size(); ++k) items.back().state[k] = &p.state[k];
  }
  return items;
}

template <class T, class Rule>
std::vector<Parameter<T, Rule::states>> after_steps(Rule rule, bool channels_last) {
  auto parameters = make_parameters<T, Rule::states>(5);
  for (int step = 1; step <= 3; ++step) {
    if constexpr (requires { rule.begin_step(step); }) rule.begin_step(step);
    if constexpr (!std::same_as<T, CpuArray>)
      for (auto& p : parameters)
        if (channels_last && p.value.shape().rank() == 4)
          p.gradient = p.gradient.in_layout(cuda::Layout::channels_last);
    const auto items = items_of(parameters);
    apply_update(rule, 0.5, std::span<const optim::UpdateItem<T, Rule::states>>(items));
  }
  return parameters;
}

/// What the rule was applied to.
template <class T, int States> const CudaTensor& wide_value(const Parameter<T, States>& p) {
  if constexpr (std::same_as<T, Half>)
    return p.master;
  else
    return p.value;
}

template <class T, class Rule> void expect_same(const Rule& rule) {
  const auto expected = after_steps<CpuArray>(rule, false);
  for (const bool channels_last : {false, true}) {
    const auto got = after_steps<T>(rule, channels_last);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto compare = [&](const CudaTensor& x, const CpuArray& y) {
        const auto a = x.to_host(), b = y.to_host();
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], 4e-6 * std::max(1.0f, std::abs(b[k]))) << i << ", element " << k;
      };
      compare(wide_value(got[i]), expected[i].value);
      for (std::size_t k = 0; k < expected[i].state.size(); ++k)
        compare(got[i].state[k], expected[i].state[k]);
    }
  }
}

template <class T> void expect_the_same_by_all_rules() {
  expect_same<T>(optim::SgdRule{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-2, .nesterov = true});
  expect_same<T>(optim::AdamRule<false>{.lr = 0.01, .weight_decay = 1e-2});
  expect_same<T>(optim::AdamRule<true>{.lr = 0.01});
}

TEST(CudaUpdate, IsThatOfTheCpu) { expect_the_same_by_all_rules<CudaTensor>(); }

TEST(CudaUpdate, OfBfloat16UpdatesFloatMasters) { expect_the_same_by_all_rules<Half>(); }

TEST(CudaUpdate, RoundsMastersToParameters) {
  for (const bool channels_last : {false, true})
    for (const auto& p : after_steps<Half>(optim::AdamRule<false>{.lr = 0.01}, channels_last)) {
      const auto values = p.value.to_host();
      const auto masters = p.master.to_host();
      for (std::size_t k = 0; k < values.size(); ++k) ASSERT_EQ(values[k].bits, bfloat16(masters[k]).bits);
    }
}

TEST(CudaUpdate, StartsFromAParameterThatTheMasterIsNotOf) {
  Half p = Half::full({5}, bfloat16(3.0f)), g = Half::zeros({5});
  std::vector<float> masters{3.001f, 3.1f, 0, -3.0f, NAN};
  auto master = CudaTensor::from_host(masters, {5}), momentum = CudaTensor::zeros({5});
  const optim::UpdateItem<Half, 1> item{&p, &g, {&momentum}, &master};
  apply_update(optim::SgdRule{}, 1, std::span(&item, 1));
  EXPECT_EQ(master.to_host(), (std::vector<float>{3.001f, 3, 3, 3, 3}));
}

TEST(CudaUpdate, TakesTheGradientsLayoutOnce) {
  auto parameters = after_steps<CudaTensor>(optim::SgdRule{}, true);
  for (const auto& p : parameters)
    EXPECT_EQ(p.value.layout() == cuda::Layout::channels_last, p.value.shape().rank() == 4);
}

TEST(CudaUpdate, LeavesSharedParametersToTheOthers) {
  auto parameters = make_parameters<CudaTensor, 1>(7);
  const auto before = parameters[4].value;
  const auto values = before.to_host();
  const auto items = items_of(parameters);
  apply_update(optim::SgdRule{.lr = 1}, 1, std::span<const optim::UpdateItem<CudaTensor, 1>>(items));
  EXPECT_EQ(before.to_host(), values);
  EXPECT_NE(parameters[4].value.to_host(), values);
}

template <class T> struct Clipped {
  double norm;
  std::vector<typename T::Element> value;
};

/// The norm of the gradients, and a parameter after a step in which that is clipped to `most`.
template <class T> Clipped<T> after_clipped_step(double most, float poison) {
  auto parameters = make_parameters<T, 1>(9);
  if (poison != 0) parameters[1].gradient = T::full({1}, static_cast<typename T::Element>(poison));
  const auto items = items_of(parameters);
  const std::span<const optim::UpdateItem<T, 1>> all(items);
  optim::GradientNorm<T> norm;
  EXPECT_EQ(norm.value(), 0);
  apply_update(optim::SgdRule{.lr = 1}, norm.clip(all, most), all);
  return {norm.value(), parameters[5].value.to_host()};
}

TEST(CudaUpdate, ClipsOnTheDevice) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const double most : {1e-3, 10.0, 1e6}) {
    const auto got = after_clipped_step<CudaTensor>(most, 0);
    const auto expected = after_clipped_step<CpuArray>(most, 0);
    EXPECT_NEAR(got.norm, expected.norm, 1e-6 * expected.norm);
    for (std::size_t i = 0; i < expected.value.size(); ++i)
      EXPECT_NEAR(got.value[i], expected.value[i], 1e-6) << most;
    EXPECT_NEAR(after_clipped_step<Half>(most, 0).norm, expected.norm, 1e-6 * expected.norm);
    EXPECT_TRUE(std::isnan(after_clipped_step<CudaTensor>(most, nan).norm));
    EXPECT_TRUE(std::isnan(after_clipped_step<CudaTensor>(most, nan).value[0]));
  }
}

TEST(CudaUpdate, ClipsByTheNormOfNothing) {
  std::vector<Parameter<CudaTensor, 1>> parameters(1);
  parameters[0] = {CudaTensor::zeros({0}), CudaTensor::zeros({0}), {CudaTensor::zeros({0})}, {}};
  const auto items = items_of(parameters);
  optim::GradientNorm<CudaTensor> norm;
  (void)norm.clip(std::span<const optim::UpdateItem<CudaTensor, 1>>(items), 1);
  EXPECT_EQ(norm.value(), 0);
}

}  // namespace
}  // namespace taut::test
