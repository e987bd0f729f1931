// Movement of index tensors on the device. Those of numbers are in the suite of all operators.

#include <taut/cuda/movement.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

/// Indices that differ in both halves of their bits.
CpuArray::Index indices(const Shape& shape) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back((i << 33) - 3 * i);
  return CpuArray::Index::from_host(values, shape);
}

/// Runs f on the CPU's indices and on the device's.
template <class F> void expect_same(const Shape& shape, const F& f) {
  const auto x = indices(shape);
  const auto got = f(on_device<float>(x)), expected = f(x);
  EXPECT_EQ(got.shape(), expected.shape());
  EXPECT_EQ(got.to_host(), expected.to_host()) << shape;
}

TEST(CudaMovement, PermutesIndices) {
  // Element by element, and by tiles of 32, whole ones and others.
  for (const Shape& shape : {Shape{3, 5}, Shape{0, 4}, Shape{8, 8}, Shape{64, 32}, Shape{33, 70}})
    expect_same(shape, [](const auto& x) { return transpose(x); });
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 40, 70}, Shape{5, 2, 64}})
    for (const Axes& order : {Axes{2, 1, 0}, Axes{0, 2, 1}, Axes{1, 0, 2}, Axes{2, 0, 1}})
      expect_same(shape, [&](const auto& x) { return permute(x, order); });
}

TEST(CudaMovement, SlicesIndices) {
  for (const Shape& shape : {Shape{7, 8}, Shape{9, 33}, Shape{1000, 3}})
    for (const int axis : {0, 1})
      for (const std::int64_t start : {0, 1, 2})
        for (const std::int64_t step : {1, 2, 3})
          expect_same(shape, [&](const auto& x) { return slice(x, axis, start, shape[axis], step); });
  expect_same({4, 6}, [](const auto& x) { return eval(op::Unslice{1, 1, 2, 13}, x); });
}

TEST(CudaMovement, JoinsIndices) {
  for (const Shape& shape : {Shape{2, 3}, Shape{4, 8}, Shape{33, 34}})
    for (const int axis : {0, 1})
      expect_same(shape, [&](const auto& x) { return concat(axis, x, slice(x, axis, 1, 2), x); });
}

TEST(CudaMovement, RepeatsIndices) {
  for (const std::int64_t n : {1, 2, 3, 33}) {
    expect_same({n, 1}, [&](const auto& x) { return broadcast_to(x, {n, 10}); });
    expect_same({n}, [&](const auto& x) { return broadcast_to(x, {5, n}); });
  }
}

TEST(CudaMovement, ReshapesIndices) {
  expect_same({4, 6}, [](const auto& x) { return reshape(transpose(x), {3, 8}); });
}

}  // namespace
}  // namespace taut::test
