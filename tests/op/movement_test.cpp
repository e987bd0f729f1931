// Operators that move elements, through the suite.

#include <taut/op/movement.hpp>

#include "suite.hpp"

namespace taut::test {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Movement rounds nothing and is linear.
Case movement(std::string name, Programs call, Oracle oracle, std::vector<Shapes> shapes,
              std::vector<Shapes> rejected, std::string error) {
  const auto operands = shapes.at(0).size();
  return {.name = std::move(name),
          .call = std::move(call),
          .oracle = std::move(oracle),
          .operands = std::vector<Operand>(operands, {.curved = false}),
          .shapes = std::move(shapes),
          .rejected = std::move(rejected),
          .ulps = 0,
          .error = std::move(error)};
}

Case reshape_case(std::string name, Shape to, std::vector<Shapes> shapes, std::vector<Shapes> rejected) {
  return movement(
      std::move(name), programs<1>([to](auto&& x) { return reshape(std::forward<decltype(x)>(x), to); }),
      [to](const std::vector<Reference>& operands) {
        Shape full = to;
        std::int64_t known = 1;
        for (const auto extent : to) known *= extent == -1 ? 1 : extent;
        for (int i = 0; i < to.rank(); ++i)
          if (to[i] == -1) full[i] = static_cast<std::int64_t>(operands[0].values.size()) / known;
        return with_shape(operands[0], full);
      },
      std::move(shapes), std::move(rejected), "reshape");
}

Case flatten_case() {
  return movement(
      "flatten", programs<1>([](auto&& x) { return flatten(std::forward<decltype(x)>(x)); }),
      [](const std::vector<Reference>& operands) {
        const Shape& from = operands[0].shape;
        std::int64_t rest = 1;
        for (int i = 1; i < from.rank(); ++i) rest *= from[i];
        return with_shape(operands[0], {from[0], rest});
      },
      {{{2, 3, 4}}, {{7}}, {{0, 3, 2}}, {{3, 0}}, {{2, 1, 33}}}, {}, "reshape");
}

Case permute_case(std::string name, Programs call, std::vector<int> order, std::vector<Shapes> shapes,
                  std::vector<Shapes> rejected, std::string error) {
  return movement(
      std::move(name), std::move(call),
      [order](const std::vector<Reference>& operands) {
        const Shape& from = operands[0].shape;
        Shape to = from;
        for (int i = 0; i < from.rank(); ++i) to[i] = from[order[at(i)]];
        return gather(operands[0], to, [&](const Index& index) {
          Index source(index.size());
          for (int i = 0; i < from.rank(); ++i) source[at(order[at(i)])] = index[at(i)];
          return source;
        });
      },
      std::move(shapes), std::move(rejected), std::move(error));
}

Case permute_case(std::string name, Axes axes, std::vector<int> order, std::vector<Shapes> shapes,
                  std::vector<Shapes> rejected) {
  return permute_case(std::move(name),
                      programs<1>([axes](auto&& x) { return permute(std::forward<decltype(x)>(x), axes); }),
                      std::move(order), std::move(shapes), std::move(rejected), "permute");
}

Case broadcast_case(std::string name, Shape to, std::vector<Shapes> shapes, std::vector<Shapes> rejected) {
  return movement(
      std::move(name), programs<1>([to](auto&& x) { return broadcast_to(std::forward<decltype(x)>(x), to); }),
      [to](const std::vector<Reference>& operands) {
        Reference result{to, {}};
        for_each_index(to, [&](const Index& index) {
          result.values.push_back(operands[0].values[flat_broadcast(operands[0].shape, index)]);
        });
        return result;
      },
      std::move(shapes), std::move(rejected), "broadcast_to");
}

Case sum_to_case(std::string name, Shape to, std::vector<Shapes> shapes, std::vector<Shapes> rejected) {
  Case c = movement(
      std::move(name), programs<1>([to](auto&& x) { return sum_to(std::forward<decltype(x)>(x), to); }),
      [to](const std::vector<Reference>& operands) {
        const Reference& x = operands[0];
        const int added = x.shape.rank() - to.rank();
        return with_shape(sum_over(x, [&](int i) { return i < added || to[i - added] == 1; }), to);
      },
      std::move(shapes), std::move(rejected), "sum_to");
  c.ulps = 4;
  return c;
}

/// x[start:stop:step] along an axis, all counted from the front.
Case slice_case(std::string name, Programs call, int axis, std::int64_t start, std::int64_t stop,
                std::int64_t step, std::vector<Shapes> shapes, std::vector<Shapes> rejected) {
  return movement(
      std::move(name), std::move(call),
      [=](const std::vector<Reference>& operands) {
        Shape to = operands[0].shape;
        to[axis] = 0;
        for (auto i = start; i < stop; i += step) ++to[axis];
        return gather(operands[0], to, [&](const Index& index) {
          Index source = index;
          source[at(axis)] = start + index[at(axis)] * step;
          return source;
        });
      },
      std::move(shapes), std::move(rejected), "slice");
}

/// The adjoint of `slice`, which gradient rules use.
Case unslice_case(std::string name, op::Unslice op, std::vector<Shapes> shapes,
                  std::vector<Shapes> rejected) {
  return movement(
      std::move(name), programs<1>([op](auto&& x) { return eval(op, std::forward<decltype(x)>(x)); }),
      [op](const std::vector<Reference>& operands) {
        const Reference& x = operands[0];
        Shape to = x.shape;
        to[op.axis] = op.extent;
        Reference result{to, std::vector<double>(element_count(to), 0)};
        for_each_index(x.shape, [&](const Index& index) {
          Index target = index;
          target[at(op.axis)] = op.start + index[at(op.axis)] * op.step;
          result.values[flat(to, target)] = x.values[flat(x.shape, index)];
        });
        return result;
      },
      std::move(shapes), std::move(rejected), "unslice");
}

Reference joined(const std::vector<Reference>& operands, int axis) {
  Shape to = operands[0].shape;
  to[axis] = 0;
  for (const auto& x : operands) to[axis] += x.shape[axis];
  Reference result{to, std::vector<double>(element_count(to), 0)};
  std::int64_t start = 0;
  for (const auto& x : operands) {
    for_each_index(x.shape, [&](const Index& index) {
      Index target = index;
      target[at(axis)] += start;
      result.values[flat(to, target)] = x.values[flat(x.shape, index)];
    });
    start += x.shape[axis];
  }
  return result;
}

template <int N>
Case concat_case(std::string name, int axis, std::vector<Shapes> shapes, std::vector<Shapes> rejected) {
  return movement(
      std::move(name),
      programs<N>([axis](auto&&... xs) { return concat(axis, std::forward<decltype(xs)>(xs)...); }),
      [axis](const std::vector<Reference>& operands) {
        return joined(operands, axis < 0 ? axis + operands[0].shape.rank() : axis);
      },
      std::move(shapes), std::move(rejected), "concat");
}

std::vector<Case> shape_cases() {
  return {
      reshape_case("reshape_to_matrix", {3, -1}, {{{6}}, {{2, 3}}, {{33, 1}}, {{3, 0}}, {{3, 7, 31}}},
                   {{{7}}, {{2, 2}}}),
      reshape_case("reshape_to_scalar", {}, {{{1}}, {{1, 1}}, {{}}}, {{{2}}, {{0}}}),
      reshape_case("reshape_of_empty", {0, 3}, {{{0}}, {{2, 0}}}, {{{3}}}),
      flatten_case(),
      broadcast_case("broadcast_to_matrix", {3, 4}, {{{3, 4}}, {{4}}, {{1, 4}}, {{3, 1}}, {{1}}, {{}}},
                     {{{3}}, {{4, 3}}, {{1, 3, 4}}}),
      broadcast_case("broadcast_to_rank_6", {2, 3, 2, 1, 2, 3}, {{{3, 1, 1, 2, 1}}, {{2, 1, 2, 1, 1, 3}}},
                     {}),
      broadcast_case("broadcast_to_empty", {0, 3}, {{{3}}, {{1, 1}}, {{0, 1}}}, {{{2}}}),
      broadcast_case("broadcast_to_many", {257, 130}, {{{130}}, {{257, 1}}}, {}),
      sum_to_case("sum_to_vector", {4}, {{{4}}, {{3, 4}}, {{2, 3, 4}}, {{700, 4}}, {{0, 4}}},
                  {{{3}}, {{4, 3}}, {{}}}),
      sum_to_case("sum_to_column", {3, 1}, {{{3, 4}}, {{2, 3, 33}}, {{3, 1}}, {{3, 0}}, {{3, 1025}}},
                  {{{3}}, {{4, 4}}}),
      sum_to_case("sum_to_scalar", {}, {{{}}, {{7}}, {{2, 3}}, {{0}}, {{threaded}}}, {}),
      sum_to_case("sum_to_rank_4", {2, 1, 3, 1}, {{{2, 5, 3, 4}}, {{7, 2, 2, 3, 3}}}, {{{2, 3, 1}}}),
  };
}

std::vector<Case> place_cases() {
  return {
      permute_case("transpose", programs<1>([](auto&& x) { return transpose(std::forward<decltype(x)>(x)); }),
                   {1, 0}, {{{3, 4}}, {{33, 31}}, {{1, 5}}, {{0, 3}}, {{65, 1025}}}, {{{3}}, {{}}},
                   "transpose"),
      permute_case("transpose_of_axes",
                   programs<1>([](auto&& x) { return transpose(std::forward<decltype(x)>(x), 0, -2); }),
                   {2, 1, 0, 3}, {{{2, 3, 4, 5}}, {{3, 1, 2, 2}}}, {{{3}}}, "transpose"),
      permute_case("permute_cycle", {2, 0, 1}, {2, 0, 1},
                   {{{2, 3, 4}}, {{33, 2, 31}}, {{2, 0, 3}}, {{67, 40, 33}}}, {{{3, 4}}}),
      permute_case("permute_negative", {-1, 0, -2}, {2, 0, 1}, {{{2, 3, 4}}}, {{{1, 2, 3, 4}}}),
      permute_case("permute_of_rank_6", {5, 3, 1, 0, 2, 4}, {5, 3, 1, 0, 2, 4}, {{{2, 3, 1, 2, 2, 3}}}, {}),
      permute_case("permute_identity", {0, 1}, {0, 1}, {{{3, 5}}}, {}),
      permute_case("permute_of_scalar", {}, {}, {{{}}}, {{{2}}}),
      slice_case("slice_of_rows",
                 programs<1>([](auto&& x) { return slice(std::forward<decltype(x)>(x), 0, 1, 3); }), 0, 1, 3,
                 1, {{{4, 3}}, {{3}}, {{5, 2, 2}}, {{33, 31}}, {{3, 0}}}, {{{2, 3}}, {{}}}),
      slice_case("slice_with_step",
                 programs<1>([](auto&& x) { return slice(std::forward<decltype(x)>(x), -1, 1, 7, 3); }), 1, 1,
                 7, 3, {{{3, 7}}, {{2, 8}}, {{33, 31}}, {{0, 7}}}, {{{2, 6}}}),
      slice_case("slice_from_the_end",
                 programs<1>([](auto&& x) { return slice(std::forward<decltype(x)>(x), 1, -3, -1); }), 1, 4,
                 6, 1, {{{3, 7}}, {{2, 7, 2}}}, {{{7}}}),
      slice_case("slice_of_nothing",
                 programs<1>([](auto&& x) { return slice(std::forward<decltype(x)>(x), 0, 2, 2); }), 0, 2, 2,
                 1, {{{2, 0}}}, {{{1, 3}}}),
      unslice_case("unslice", {.axis = 0, .start = 1, .extent = 5}, {{{2, 3}}, {{4}}, {{3, 0}}, {{2, 33, 2}}},
                   {{{5}}}),
      unslice_case("unslice_with_step", {.axis = 1, .start = 1, .step = 3, .extent = 8},
                   {{{2, 3}}, {{3, 2}}, {{0, 3}}, {{2, 3, 2}}}, {{{2, 4}}}),
      concat_case<2>("concat", 0,
                     {{{2}, {3}},
                      {{2, 3}, {1, 3}},
                      {{31}, {33}},
                      {{2, 5, 2}, {3, 5, 2}},
                      {{200, 130}, {57, 130}},
                      {{0}, {3}},
                      {{2, 3}, {0, 3}},
                      {{0}, {0}}},
                     {{{2}, {2, 3}}, {{2, 3}, {2, 4}}}),
      concat_case<3>("concat_of_three", -1,
                     {{{2, 3}, {2, 1}, {2, 4}}, {{3, 2, 5}, {3, 2, 2}, {3, 2, 1}}, {{1}, {1}, {1}}}, {}),
      concat_case<1>("concat_of_one", 0, {{{4, 3}}}, {{{}}}),
  };
}

INSTANTIATE_TEST_SUITE_P(Shape, OperatorSuite, testing::ValuesIn(shape_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Place, OperatorSuite, testing::ValuesIn(place_cases()), case_name);

TEST(Movement, RejectsAnOrderThatNamesAnAxisTwice) {
  EXPECT_EQ(message_of<ShapeError>([] {
              permute(Double::ones({2, 3}), {0, 0});
            }),
            "permute: the order must name each axis of the operand once: [2, 3]");
  EXPECT_EQ(message_of<ShapeError>([] {
              permute(Double::ones({2, 3}), {1, -1});
            }),
            "permute: the order must name each axis of the operand once: [2, 3]");
}

TEST(Movement, RejectsTwoOpenExtents) {
  EXPECT_EQ(message_of<ShapeError>([] {
              reshape(Double::ones({6}), {-1, -1});
            }),
            "reshape: one extent at most may be -1: [6] x [-1, -1]");
  EXPECT_NE(message_of<ShapeError>([] { reshape(Double::ones({6}), {-2, -3}); }), "no error");
  EXPECT_NE(message_of<ShapeError>([] {
              reshape(Double::ones({0}), {0, -1});
            }),
            "no error")
      << "any extent would do";
}

TEST(Movement, RejectsASliceThatIsNone) {
  const auto x = Double::ones({2, 5});
  for (const auto& [start, stop, step] :
       {std::array<std::int64_t, 3>{3, 2, 1}, {0, 6, 1}, {0, 5, 0}, {-6, 5, 1}, {0, 5, -1}})
    EXPECT_NE(message_of<ShapeError>([&, a = start, b = stop, s = step] { slice(x, 1, a, b, s); }),
              "no error");
}

TEST(Movement, SharesTheBufferWhereNothingMoves) {
  const auto x = Double::ones({2, 3});
  EXPECT_EQ(reshape(x, {3, 2}).data(), x.data());
  EXPECT_EQ(broadcast_to(x, {2, 3}).data(), x.data());
  EXPECT_EQ(sum_to(x, {2, 3}).data(), x.data());
  auto y = Double::ones({4});
  const double* data = y.data();
  const auto z = reshape(std::move(y), {2, 2});
  EXPECT_EQ(z.data(), data);
  EXPECT_TRUE(z.unique()) << "an rvalue hands its buffer on, so that the next kernel may reuse it";
}

}  // namespace
}  // namespace taut::test
