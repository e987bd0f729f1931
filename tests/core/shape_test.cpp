#include "taut/core/shape.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>

namespace {

using taut::Axes;
using taut::broadcast_shapes;
using taut::normalize_axis;
using taut::require;
using taut::Shape;
using taut::ShapeError;

/// The text of the `ShapeError` that `f` throws.
template <class F> std::string error_of(F f) {
  try {
    f();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "(no error)";
}

// ---- Shape in constant expressions

static_assert(Shape{}.rank() == 0 && Shape{}.size() == 1);
static_assert(Shape{5}.rank() == 1 && Shape{5}.size() == 5);
static_assert(Shape{64, 3, 32, 32}.rank() == 4 && Shape{64, 3, 32, 32}.size() == 64 * 3 * 32 * 32);
static_assert(Shape{2, 0, 3}.rank() == 3 && Shape{2, 0, 3}.size() == 0);
static_assert(Shape{1, 2, 3, 4, 5, 6}.rank() == taut::max_rank && Shape{1, 2, 3, 4, 5, 6}.size() == 720);
static_assert(Shape{100000, 100000}.size() == 10000000000);

static_assert(Shape{2, 3}[0] == 2 && Shape{2, 3}[1] == 3);
static_assert(Shape{2, 3, 4}[-1] == 4 && Shape{2, 3, 4}[-3] == 2);

static_assert(Shape{2, 3} == Shape{2, 3} && Shape{2, 3} != Shape{3, 2});
static_assert(Shape{2} != Shape{2, 1} && Shape{} != Shape{1} && Shape{0} != Shape{});
static_assert(Axes{0, -1} == Axes{0, -1} && Axes{} != Axes{0});

template <Shape shape> constexpr std::int64_t size_of = shape.size();
static_assert(size_of<Shape{2, 3}> == 6);
static_assert(
    std::is_same_v<std::integral_constant<Shape, Shape{2, 3}>, std::integral_constant<Shape, Shape{2, 3}>>);
static_assert(
    !std::is_same_v<std::integral_constant<Shape, Shape{2}>, std::integral_constant<Shape, Shape{2, 1}>>);
static_assert(std::is_trivially_copyable_v<Shape>);

constexpr Shape built() {
  Shape shape{2};
  shape.push_back(5);
  shape[-1] = 7;
  shape[0] = 3;
  return shape;
}
static_assert(built() == Shape{3, 7});

constexpr std::int64_t sum_of_extents(const Shape& shape) {
  std::int64_t sum = 0;
  for (const auto extent : shape) sum += extent;
  return sum;
}
static_assert(sum_of_extents({2, 3, 4}) == 9 && sum_of_extents({}) == 0);

// ---- rank limit and text

TEST(Shape, HasAtMostSixDimensions) {
  EXPECT_EQ(error_of([] { return Shape{1, 1, 1, 1, 1, 1, 1}; }), "shape: a tensor has at most 6 dimensions");
  EXPECT_EQ(error_of([] {
              Shape shape{1, 2, 3, 4, 5, 6};
              shape.push_back(7);
            }),
            "shape: a tensor has at most 6 dimensions");
  EXPECT_EQ((Shape{1, 2, 3, 4, 5, 6}.rank()), 6);
}

TEST(Shape, IsPrintedAsAList) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{7}), "[7]");
  EXPECT_EQ(to_string(Shape{64, 3, 32, 32}), "[64, 3, 32, 32]");
  std::ostringstream out;
  out << Shape{2, 0};
  EXPECT_EQ(out.str(), "[2, 0]");
}

// ---- require

constexpr bool passes() {
  require(true, "never seen");
  require(true, "never seen", Shape{1}, Shape{2});
  require(true, "op", "never seen", Shape{1});
  return true;
}
static_assert(passes());

TEST(Require, SaysWhatIsWrongWithWhichShapes) {
  EXPECT_EQ(error_of([] {
              require(false, "matmul: the inner dimensions differ", Shape{64, 783}, Shape{784, 128});
            }),
            "matmul: the inner dimensions differ: [64, 783] x [784, 128]");
  EXPECT_EQ(error_of([] { require(false, "reshape: sizes differ", Shape{}); }), "reshape: sizes differ: []");
  EXPECT_EQ(error_of([] { require(false, "no shapes"); }), "no shapes");
  EXPECT_EQ(error_of([] { require(false, "add", "of three", Shape{1}, Shape{2}, Shape{3}); }),
            "add: of three: [1] x [2] x [3]");
}

TEST(Require, ThrowsTautErrors) {
  EXPECT_THROW(require(false, "wrong"), taut::Error);
  EXPECT_THROW(require(false, "wrong"), std::runtime_error);
}

// ---- broadcasting

static_assert(broadcast_shapes("add", {2, 3}, {2, 3}) == Shape{2, 3});
static_assert(broadcast_shapes("add", {2, 3}, {}) == Shape{2, 3});
static_assert(broadcast_shapes("add", {}, {2, 3}) == Shape{2, 3});
static_assert(broadcast_shapes("add", {}, {}) == Shape{});
static_assert(broadcast_shapes("add", {2, 3}, {3}) == Shape{2, 3});
static_assert(broadcast_shapes("add", {3}, {2, 3}) == Shape{2, 3});
static_assert(broadcast_shapes("add", {2, 1}, {1, 3}) == Shape{2, 3});
static_assert(broadcast_shapes("add", {4, 1, 3}, {2, 1}) == Shape{4, 2, 3});
static_assert(broadcast_shapes("add", {1}, {1, 1, 1}) == Shape{1, 1, 1});
static_assert(broadcast_shapes("add", {1, 1, 1, 1, 1, 1}, {2, 3, 4, 5, 6, 7}) == Shape{2, 3, 4, 5, 6, 7});
// An extent of nought stretches no other, but one stretches to nought.
static_assert(broadcast_shapes("add", {0, 3}, {1, 3}) == Shape{0, 3});
static_assert(broadcast_shapes("add", {1, 3}, {0, 3}) == Shape{0, 3});
static_assert(broadcast_shapes("add", {0}, {}) == Shape{0});

TEST(Broadcast, NamesOperatorAndShapesInTheirOrder) {
  EXPECT_EQ(error_of([] {
              broadcast_shapes("add", {2, 3}, {2, 4});
            }),
            "add: the operands' shapes do not broadcast: [2, 3] x [2, 4]");
  EXPECT_EQ(error_of([] {
              broadcast_shapes("where", {3}, {5, 2});
            }),
            "where: the operands' shapes do not broadcast: [3] x [5, 2]");
  EXPECT_EQ(error_of([] {
              broadcast_shapes("mul", {5, 2}, {3});
            }),
            "mul: the operands' shapes do not broadcast: [5, 2] x [3]");
  EXPECT_EQ(error_of([] { broadcast_shapes("mul", {0}, {3}); }),
            "mul: the operands' shapes do not broadcast: [0] x [3]");
  EXPECT_EQ(error_of([] {
              broadcast_shapes("mul", {2, 1}, {3, 4});
            }),
            "mul: the operands' shapes do not broadcast: [2, 1] x [3, 4]");
}

// ---- axes

static_assert(normalize_axis("sum", 0, {2, 3}) == 0 && normalize_axis("sum", 1, {2, 3}) == 1);
static_assert(normalize_axis("sum", -1, {2, 3}) == 1 && normalize_axis("sum", -2, {2, 3}) == 0);
static_assert(normalize_axis("sum", -6, {1, 2, 3, 4, 5, 6}) == 0 &&
              normalize_axis("sum", 5, {1, 2, 3, 4, 5, 6}) == 5);

TEST(NormalizeAxis, RefusesAxesOutOfRange) {
  EXPECT_EQ(error_of([] {
              normalize_axis("sum", 2, {2, 3});
            }),
            "sum: there is no axis 2 in the operand: [2, 3]");
  EXPECT_EQ(error_of([] {
              normalize_axis("sum", -3, {2, 3});
            }),
            "sum: there is no axis -3 in the operand: [2, 3]");
  EXPECT_EQ(error_of([] {
              normalize_axis("sum", std::int64_t{1} << 32, {2, 3});
            }),
            "sum: there is no axis 4294967296 in the operand: [2, 3]");
  EXPECT_EQ(error_of([] { normalize_axis("sum", 0, {}); }), "sum: there is no axis 0 in the operand: []");
}

}  // namespace
