// Average pooling and upsampling through the suite.

#include <taut/op/resample2d.hpp>

#include <cmath>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// The weight of element i of `from` in place o of `to`, by the definition of a resampling along one axis.
using Weight = std::function<double(std::int64_t from, std::int64_t to, std::int64_t i, std::int64_t o)>;

/// The sum over all pixels, whatever their weight.
Oracle weighted(const Weight& rows, const Weight& columns, std::function<Shape(const Shape&)> shape_of) {
  return [=](const std::vector<Reference>& operands) {
    const Reference& x = operands[0];
    Reference y{shape_of(x.shape), {}};
    for_each_index(y.shape, [&](const Index& at) {
      double total = 0, scale = 0;
      for (std::int64_t i = 0; i < x.shape[2]; ++i)
        for (std::int64_t j = 0; j < x.shape[3]; ++j) {
          const double term = x.values[flat(x.shape, {at[0], at[1], i, j})] *
                              rows(x.shape[2], y.shape[2], i, at[2]) *
                              columns(x.shape[3], y.shape[3], j, at[3]);
          total += term, scale += std::abs(term);
        }
      y.values.push_back(total), y.scale.push_back(scale);
    });
    return y;
  };
}

Weight window(std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool with_padding = true) {
  return [=](std::int64_t from, std::int64_t, std::int64_t i, std::int64_t o) {
    const auto begin = o * stride - padding, end = begin + kernel;
    double count = 0;
    for (auto k = begin; k < end; ++k) count += with_padding || (k >= 0 && k < from);
    return begin <= i && i < end ? 1 / count : 0;
  };
}

double adaptive(std::int64_t from, std::int64_t to, std::int64_t i, std::int64_t o) {
  const double begin = std::floor(static_cast<double>(o * from) / static_cast<double>(to)),
               end = std::ceil(static_cast<double>((o + 1) * from) / static_cast<double>(to));
  return begin <= static_cast<double>(i) && static_cast<double>(i) < end ? 1 / (end - begin) : 0;
}

double nearest(std::int64_t from, std::int64_t to, std::int64_t i, std::int64_t o) {
  return o * from / to == i ? 1 : 0;
}

double bilinear(std::int64_t from, std::int64_t to, std::int64_t i, std::int64_t o) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double centre =
      std::clamp((static_cast<double>(o) + 0.5) * scale - 0.5, 0.0, static_cast<double>(from - 1));
  return std::max(0.0, 1 - std::abs(centre - static_cast<double>(i)));
}

template <class Op>
Case resample_case(std::string name, const Op& op, Oracle oracle, std::vector<Shapes> shapes) {
  return {.name = std::move(name),
          .call = programs<1>([op](auto&& x) { return eval(op, std::forward<decltype(x)>(x)); }),
          .oracle = std::move(oracle),
          .operands = {{.curved = false}},
          .shapes = std::move(shapes),
          .rejected = {{{3, 4, 4}}},
          .ulps = 8,
          .error = std::string(Op::name)};
}

const op::AvgPool2d padded{.kernel = 3, .stride = 2, .padding = 1};
const op::AvgPool2d bare{.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false};
const op::AdaptiveAvgPool2d to_3_by_4{{3, 4}};
const op::Upsample2d nearest_2_by_3{{2, 3}, false}, bilinear_2_by_3{{2, 3}, true};

std::vector<Case> cases() {
  const auto shape_of = [](auto op) { return [op](const Shape& x) { return op.shape(x); }; };
  std::vector<Case> all{
      resample_case("avg_pool2d", op::AvgPool2d{},
                    weighted(window(2, 2, 0), window(2, 2, 0), shape_of(op::AvgPool2d{})),
                    {{{2, 3, 4, 5}}, {{1, 17, 2, 2}}, {{0, 2, 2, 2}}, {{2, 0, 2, 2}}}),
      resample_case("avg_pool2d_padded", padded, weighted(window(3, 2, 1), window(3, 2, 1), shape_of(padded)),
                    {{{1, 2, 5, 7}}, {{1, 2, 1, 1}}}),
      resample_case("avg_pool2d_without_padding", bare,
                    weighted(window(3, 2, 1, false), window(3, 2, 1, false), shape_of(bare)),
                    {{{1, 2, 5, 4}}}),
      resample_case("adaptive_avg_pool2d", to_3_by_4, weighted(adaptive, adaptive, shape_of(to_3_by_4)),
                    {{{2, 2, 5, 7}}, {{1, 1, 2, 2}}, {{1, 3, 1, 1}}}),
      resample_case("global_avg_pool2d", op::AdaptiveAvgPool2d{},
                    weighted(adaptive, adaptive, shape_of(op::AdaptiveAvgPool2d{})), {{{2, 19, 4, 3}}}),
      resample_case("upsample_nearest2d", nearest_2_by_3,
                    weighted(nearest, nearest, shape_of(nearest_2_by_3)), {{{2, 2, 3, 2}}, {{1, 17, 1, 1}}}),
      resample_case("upsample_bilinear2d", bilinear_2_by_3,
                    weighted(bilinear, bilinear, shape_of(bilinear_2_by_3)),
                    {{{2, 2, 3, 2}}, {{1, 17, 1, 1}}}),
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Resample2d, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Resample2d, RejectsOptionsThatMakeNoSense) {
  const auto x = Float::ones({1, 2, 4, 4});
  EXPECT_THROW(avg_pool2d(x, {.kernel = 0}), ShapeError);
  EXPECT_THROW(avg_pool2d(x, {.kernel = 5}), ShapeError);
  EXPECT_THROW(avg_pool2d(x, {.kernel = 3, .padding = 2}), ShapeError);
  EXPECT_THROW(adaptive_avg_pool2d(x, 0), ShapeError);
  EXPECT_THROW(adaptive_avg_pool2d(Float::ones({1, 2, 0, 4}), 1), ShapeError);
  EXPECT_THROW(upsample_nearest2d(x, 0), ShapeError);
}

TEST(Resample2d, GivesWhatPyTorchDoesAtEdgePoints) {
  EXPECT_TRUE(none(check_fixtures("resample2d", programs_of(cases()), {.ulps = 8, .floor = 1})));
}

}  // namespace
}  // namespace taut::test
