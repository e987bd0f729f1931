// Reductions through the suite, and their edge points.

#include <taut/op/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// Which axes a case reduces, all if none is named, and whether they stay with extent one.
struct Reduction {
  std::string name;
  Axes axes;
  bool keepdim;

  bool reduces(int axis, int rank) const {
    for (const auto a : axes)
      if (axis == (a < 0 ? a + rank : a)) return true;
    return axes.count == 0;
  }

  Shape result(const Shape& from) const {
    Shape to;
    for (int i = 0; i < from.rank(); ++i) {
      if (!reduces(i, from.rank()))
        to.push_back(from[i]);
      else if (keepdim)
        to.push_back(1);
    }
    return to;
  }
};

Oracle sum_oracle(Reduction how, bool divided = false) {
  return [=](const std::vector<Reference>& operands) {
    const Reference& x = operands[0];
    Reference result = sum_over(x, [&](int axis) { return how.reduces(axis, x.shape.rank()); });
    const double count =
        divided ? static_cast<double>(x.values.size()) / static_cast<double>(result.values.size()) : 1;
    for (auto* values : {&result.values, &result.scale})
      for (double& value : *values) value /= count;
    return with_shape(result, how.result(x.shape));
  };
}

Oracle extreme_oracle(Reduction how, bool largest) {
  return [=](const std::vector<Reference>& operands) {
    const Reference& x = operands[0];
    Shape kept = x.shape;
    for (int i = 0; i < kept.rank(); ++i)
      if (how.reduces(i, kept.rank())) kept[i] = 1;
    Reference result{kept, std::vector<double>(element_count(kept), largest ? -HUGE_VAL : HUGE_VAL)};
    for_each_index(x.shape, [&](const Index& index) {
      double& extreme = result.values[flat_broadcast(kept, index)];
      const double value = x.values[flat(x.shape, index)];
      if (largest ? value > extreme : value < extreme) extreme = value;
    });
    return with_shape(result, how.result(x.shape));
  };
}

Case reduction(const std::string& op, const Reduction& how, Programs call, Oracle oracle, Operand operand,
               std::vector<Shapes> shapes) {
  return {.name = op + "_" + how.name,
          .call = std::move(call),
          .oracle = std::move(oracle),
          .operands = {std::move(operand)},
          .shapes = std::move(shapes),
          .ulps = 4,
          .error = op};
}

/// Shapes of a rank that a reduction of these axes can take, with long and short runs of each kind of axis.
std::vector<Shapes> shapes_for(const std::string& axes) {
  if (axes == "all") {
    auto shapes = unary_shapes();
    shapes.push_back({{200000}});
    return shapes;
  }
  if (axes == "last")
    return {{{7}},    {{3, 33}},    {{33, 3}}, {{2, 3, 4}}, {{5, 1025}},
            {{1, 4}}, {{40, 1023}}, {{3, 0}},  {{0, 3}}};
  if (axes == "first")
    return {{{7}},     {{3, 33}},    {{33, 3}}, {{2, 3, 4}}, {{1025, 5}},
            {{4, 65}}, {{257, 130}}, {{3, 0}},  {{0, 3}}};
  if (axes == "middle")
    return {{{2, 3, 4}}, {{3, 33, 2}}, {{2, 70, 67}}, {{2, 3, 2, 2}}, {{2, 0, 3}}, {{5, 129, 70}}};
  return {{{2, 3, 4}}, {{5, 2, 7}}, {{31, 3, 33}},
          {{4, 1, 3}}, {{2, 3, 0}}, {{3, 257, 65}}};  // first and last
}

std::vector<Shapes> without_empty(std::vector<Shapes> shapes) {
  std::erase_if(shapes, [](const Shapes& s) { return s[0].size() == 0; });
  return shapes;
}

const std::vector<Reduction>& reductions() {
  static const std::vector<Reduction> all{{"all", {}, false},
                                          {"last", {-1}, false},
                                          {"first", {0}, true},
                                          {"middle", {1}, false},
                                          {"first_and_last", {-1, 0}, false}};
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Reduction& how : reductions()) {
    const auto shapes = shapes_for(how.name);
    auto c = reduction("sum", how, programs<1>([how](auto&& x) {
                         return sum(std::forward<decltype(x)>(x), how.axes, how.keepdim);
                       }),
                       sum_oracle(how), {.curved = false}, shapes);
    if (how.axes.count > 0) c.rejected = {{{}}};
    all.push_back(c);
    c = reduction("mean", how, programs<1>([how](auto&& x) {
                    return mean(std::forward<decltype(x)>(x), how.axes, how.keepdim);
                  }),
                  sum_oracle(how, true), {.curved = false}, without_empty(shapes));
    if (how.axes.count > 0) c.rejected = {{{}}};
    all.push_back(c);
    // An extreme of no elements does not exist; the values of a gradient's tensor of this size lie too close
    // together for differences.
    auto small = without_empty(shapes);
    std::erase_if(small, [](const Shapes& s) { return s[0].size() > 500; });
    const auto add = [&](const std::string& op, Programs call, bool largest) {
      auto extreme = reduction(op, how, std::move(call), extreme_oracle(how, largest),
                               {.fill = distinct(), .curved = false}, small);
      for (const auto& s : shapes)
        if (s[0].size() > 500) extreme.forward_shapes.push_back(s);
      extreme.rejected = {{how.axes.count > 1     ? Shape{0, 2, 2}
                           : how.name == "middle" ? Shape{2, 0}
                                                  : Shape{0}}};
      extreme.ulps = 0;
      all.push_back(extreme);
    };
    add("max",
        programs<1>([how](auto&& x) { return max(std::forward<decltype(x)>(x), how.axes, how.keepdim); }),
        true);
    add("min",
        programs<1>([how](auto&& x) { return min(std::forward<decltype(x)>(x), how.axes, how.keepdim); }),
        false);
  }
  return all;
}

/// Indices as a tensor of the type that they were computed from, to be compared as such.
template <class T> T as_values(const typename T::Index& index) {
  if constexpr (std::same_as<T, ShapeTensor>) {
    return index;
  } else {
    std::vector<typename T::Element> values;
    for (const auto i : index.to_host()) values.push_back(static_cast<typename T::Element>(i));
    return T::from_host(values, index.shape());
  }
}

Case argmax_case(int axis, bool keepdim, std::vector<Shapes> shapes) {
  const Reduction how{"", {axis}, keepdim};
  return {.name = "argmax_" + std::string(axis < 0 ? "last" : "first"),
          .call = programs<1>([=](auto&& x) {
            return as_values<std::remove_cvref_t<decltype(x)>>(argmax(x, axis, keepdim));
          }),
          .oracle =
              [=](const std::vector<Reference>& operands) {
                const Reference& x = operands[0];
                const int reduced = axis < 0 ? axis + x.shape.rank() : axis;
                Shape kept = x.shape;
                kept[reduced] = 1;
                Reference best{kept, std::vector<double>(element_count(kept), 0)};
                for_each_index(x.shape, [&](const Index& index) {
                  double& champion = best.values[flat_broadcast(kept, index)];
                  Index at = index;
                  at[static_cast<std::size_t>(reduced)] = static_cast<std::int64_t>(champion);
                  if (x.values[flat(x.shape, index)] > x.values[flat(x.shape, at)])
                    champion = static_cast<double>(index[static_cast<std::size_t>(reduced)]);
                });
                return with_shape(best, how.result(x.shape));
              },
          .operands = {{.differentiable = false}},
          .shapes = std::move(shapes),
          .rejected = {{{}}, {{0}}},
          .ulps = 0,
          .error = "argmax"};
}

std::vector<Case> argmax_cases() {
  return {argmax_case(-1, false, {{{7}}, {{3, 33}}, {{33, 1}}, {{2, 3, 4}}, {{0, 3}}, {{300, 129}}}),
          argmax_case(0, true, {{{7}}, {{3, 33}}, {{1, 5}}, {{4, 3, 2}}, {{3, 0}}, {{129, 300}}})};
}

INSTANTIATE_TEST_SUITE_P(Reduce, OperatorSuite, testing::ValuesIn(cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Argmax, OperatorSuite, testing::ValuesIn(argmax_cases()), case_name);

TEST(Reduce, RejectsAxesThatAreNamedTwiceOrMissing) {
  const auto x = Double::ones({2, 3});
  for (const auto& axes : {Axes{0, 0}, Axes{1, -1}, Axes{2}, Axes{-3}}) {
    EXPECT_THROW(sum(x, axes), ShapeError);
    EXPECT_THROW(mean(x, axes), ShapeError);
    EXPECT_THROW(max(x, axes), ShapeError);
  }
}

TEST(Reduce, HasNoExtremeOfNothing) {
  EXPECT_THROW(max(Double::ones({2, 0}), {1}), ShapeError);
  EXPECT_THROW(min(Double::ones({0})), ShapeError);
  EXPECT_EQ(max(Double::ones({0, 3}), {1}).shape(), (Shape{0})) << "no elements to find extremes of";
}

TEST(Reduce, SumsManyFloatsWithoutLosingDigits) {
  // 2^25 would be the end of counting in float.
  const std::int64_t n = std::int64_t{3} << 24;
  for (const int count : {1, 2}) {
    set_threads(count);
    EXPECT_EQ(sum(Float::ones({n})).item(), static_cast<float>(n));
    EXPECT_EQ(sum(Float::ones({n / 4, 4}), {0}).to_host(), std::vector<float>(4, static_cast<float>(n / 4)));
  }
}

/// The programs for the records of the fixtures, which name the operator and the axis.
std::map<std::string, Programs> fixture_programs() {
  std::map<std::string, Programs> programs_by_name;
  for (const auto& [suffix, axes] : {std::pair<std::string, Axes>{"_0", {0}}, {"_1", {1}}, {"_all", {}}}) {
    const auto add = [&, end = suffix](const std::string& op, Programs call) {
      programs_by_name[op + end] = std::move(call);
    };
    add("sum", programs<1>([axes](auto&& x) { return sum(x, axes); }));
    add("mean", programs<1>([axes](auto&& x) { return mean(x, axes); }));
    add("max", programs<1>([axes](auto&& x) { return max(x, axes); }));
    add("min", programs<1>([axes](auto&& x) { return min(x, axes); }));
    if (axes.count > 0)
      add("argmax", programs<1>([axis = static_cast<int>(axes.items[0])](auto&& x) {
            return as_values<std::remove_cvref_t<decltype(x)>>(argmax(x, axis));
          }));
  }
  return programs_by_name;
}

TEST(Reduce, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("reduce", fixture_programs(), {.ulps = 2})));
}

}  // namespace
}  // namespace taut::test
