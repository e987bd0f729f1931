// Convolutions and their gradients through the suite, in all layouts, by all algorithms.

#include <taut/op/conv2d.hpp>

#include <cmath>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// Calls visit(x, w, y) with the positions of each product of a convolution.
template <class Visit>
void for_each_product(const op::Conv2d& conv, const Shape& x, const Shape& w, const Visit& visit) {
  const Shape y = conv.shape(x, w);
  const auto per_group = w[0] / conv.groups;
  for_each_index(y, [&](const Index& at) {
    for_each_index({w[1], w[2], w[3]}, [&](const Index& tap) {
      const auto row = at[2] * conv.stride.h + tap[1] * conv.dilation.h - conv.padding.h;
      const auto column = at[3] * conv.stride.w + tap[2] * conv.dilation.w - conv.padding.w;
      if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) return;
      visit(flat(x, {at[0], at[1] / per_group * w[1] + tap[0], row, column}),
            flat(w, {at[1], tap[0], tap[1], tap[2]}), flat(y, at));
    });
  });
}

Reference zeros(const Shape& shape) {
  return {shape, std::vector<double>(element_count(shape)), std::vector<double>(element_count(shape))};
}

void add_product(Reference& to, std::size_t at, double a, double b) {
  to.values[at] += a * b;
  to.scale[at] += std::abs(a * b);
}

Oracle convolution(const op::Conv2d& conv) {
  return [=](const std::vector<Reference>& operands) {
    const Reference &x = operands[0], &w = operands[1];
    Reference y = zeros(conv.shape(x.shape, w.shape));
    for_each_product(conv, x.shape, w.shape, [&](std::size_t i, std::size_t j, std::size_t k) {
      add_product(y, k, x.values[i], w.values[j]);
    });
    if (operands.size() == 3)
      for_each_index(y.shape, [&](const Index& at) {
        add_product(y, flat(y.shape, at), operands[2].values[static_cast<std::size_t>(at[1])], 1);
      });
    return y;
  };
}

/// The last of four operands is a residual.
Oracle cut_off_convolution(const op::Conv2d& conv) {
  return [=](const std::vector<Reference>& operands) {
    Reference y = convolution(conv)({operands.begin(), operands.begin() + 3});
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      if (operands.size() == 4) add_product(y, i, operands[3].values[i], 1);
      y.values[i] = std::max(y.values[i], 0.0);
    }
    return y;
  };
}

Oracle data_gradient(const op::Conv2dDataGradient& op) {
  return [=](const std::vector<Reference>& operands) {
    const Reference &g = operands[0], &w = operands[1];
    Reference x = zeros(op.shape(g.shape, w.shape));
    for_each_product(op.conv, x.shape, w.shape, [&](std::size_t i, std::size_t j, std::size_t k) {
      add_product(x, i, g.values[k], w.values[j]);
    });
    return x;
  };
}

Oracle weight_gradient(const op::Conv2dWeightGradient& op) {
  return [=](const std::vector<Reference>& operands) {
    const Reference &g = operands[0], &x = operands[1];
    Reference w = zeros(op.shape(g.shape, x.shape));
    for_each_product(op.conv, x.shape, w.shape, [&](std::size_t i, std::size_t j, std::size_t k) {
      add_product(w, j, g.values[k], x.values[i]);
    });
    return w;
  };
}

template <class Op> auto applied(const Op& op) {
  return [op](auto&&... xs) { return eval(op, std::forward<decltype(xs)>(xs)...); };
}

Case conv_case(std::string name, const op::Conv2d& conv, std::vector<Shapes> shapes,
               std::vector<Shapes> rejected = {}) {
  return {.name = std::move(name),
          .call = programs<2>(applied(conv)),
          .oracle = convolution(conv),
          .operands = {{}, {}},
          .shapes = std::move(shapes),
          .rejected = std::move(rejected),
          .ulps = 8,
          .gradient_ulps = 64,
          .error = "conv2d"};
}

std::vector<Case> cases() {
  // Direct convolutions are held to the rounding of a sum of products, which Winograd's are not.
  cpu::set_conv_algorithm(cpu::ConvAlgorithm::direct);
  // Larger than any sum of products there, so that ReLU's kink is far.
  const Fill large = away_from_zero(20, 30);
  const op::Conv2dDataGradient data{{.stride = 2, .padding = 1}, {5, 4}};
  const op::Conv2dWeightGradient weight{{.stride = {1, 2}, .padding = {0, 1}}, {2, 3}};
  std::vector<Case> all{
      conv_case("conv2d", {},
                {{{1, 1, 1, 1}, {1, 1, 1, 1}},
                 {{2, 3, 4, 5}, {2, 3, 1, 1}},
                 {{1, 2, 5, 4}, {3, 2, 3, 2}},
                 {{2, 1, 3, 3}, {2, 1, 3, 3}},
                 {{2, 16, 4, 3}, {16, 16, 3, 3}},
                 {{1, 3, 7, 7}, {16, 3, 3, 3}},
                 {{1, 16, 3, 3}, {5, 16, 2, 2}},
                 {{0, 2, 3, 3}, {2, 2, 2, 2}},
                 {{2, 2, 3, 3}, {0, 2, 2, 2}}},
                {{{2, 3, 4, 4}, {2, 2, 3, 3}},
                 {{2, 3, 4, 4}, {2, 3, 5, 3}},
                 {{3, 4, 4}, {2, 3, 3, 3}},
                 {{2, 3, 4, 4}, {2, 3, 0, 3}}}),
      conv_case("conv2d_strided", {.stride = 2, .padding = 1},
                {{{2, 3, 5, 7}, {2, 3, 3, 3}},
                 {{1, 16, 6, 5}, {32, 16, 3, 3}},
                 {{1, 2, 1, 1}, {2, 2, 3, 3}},
                 {{2, 3, 8, 8}, {16, 3, 7, 7}}}),
      conv_case("conv2d_of_unequal_options", {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}},
                {{{2, 2, 5, 6}, {3, 2, 2, 3}}, {{1, 16, 4, 7}, {16, 16, 3, 3}}}),
      conv_case("conv2d_that_meets_padding", {.padding = 1},
                {{{3, 2, 1, 1}, {2, 2, 3, 3}},
                 {{2, 16, 1, 1}, {16, 16, 3, 3}},
                 {{2, 16, 2, 2}, {16, 16, 3, 3}},
                 {{33, 2, 2, 2}, {3, 2, 3, 3}},
                 {{32, 1, 1, 2}, {2, 1, 3, 3}},
                 {{32, 2, 1, 1}, {2, 2, 3, 3}}}),
      conv_case("conv2d_strided_of_small_images", {.stride = 2, .padding = {1, 2}, .dilation = {1, 2}},
                {{{33, 2, 2, 2}, {3, 2, 3, 3}}, {{32, 1, 3, 2}, {1, 1, 3, 2}}}),
      conv_case("conv2d_dilated_beyond", {.padding = 3, .dilation = 3},
                {{{2, 2, 1, 1}, {2, 2, 3, 3}}, {{1, 16, 2, 4}, {16, 16, 3, 3}}}),
      conv_case("conv2d_dilated_unevenly", {.padding = 1, .dilation = 3},
                {{{1, 16, 5, 5}, {16, 16, 3, 3}}, {{2, 3, 4, 3}, {2, 3, 2, 2}}}),
      conv_case("conv2d_grouped", {.padding = 1, .groups = 2},
                {{{2, 4, 4, 3}, {6, 2, 3, 3}}, {{1, 32, 3, 3}, {32, 16, 3, 3}}},
                {{{2, 4, 4, 3}, {5, 2, 3, 3}}, {{2, 4, 4, 3}, {6, 4, 3, 3}}}),
      conv_case("conv2d_depthwise", {.stride = 2, .padding = 1, .groups = 16},
                {{{2, 16, 5, 4}, {16, 1, 3, 3}}}),
      {.name = "conv2d_with_bias",
       .call = programs<3>([](auto&&... xs) { return conv2d(xs..., {.padding = 1}); }),
       .oracle = convolution({.padding = 1}),
       .operands = {{}, {}, {.curved = false}},
       .shapes = {{{2, 3, 4, 3}, {2, 3, 3, 3}, {2}}, {{1, 16, 3, 3}, {16, 16, 3, 3}, {16}}},
       .rejected = {{{2, 3, 4, 3}, {2, 3, 3, 3}, {3}}},
       .ulps = 8,
       .gradient_ulps = 64,
       .error = "conv2d"},
      {.name = "conv2d_relu",
       .call = programs<3>([](auto&&... xs) { return conv2d_relu(xs..., {.padding = 1}); }),
       .oracle = cut_off_convolution({.padding = 1}),
       .operands = {{.fill = between(-1, 1)}, {.fill = between(-0.1, 0.1)}, {.fill = large, .curved = false}},
       .shapes = {{{2, 3, 4, 3}, {2, 3, 3, 3}, {2}}, {{1, 16, 3, 3}, {16, 16, 3, 3}, {16}}},
       .rejected = {{{2, 3, 4, 3}, {2, 3, 3, 3}, {3}}},
       .ulps = 8,
       .gradient_ulps = 64,
       .error = "conv2d"},
      {.name = "conv2d_add_relu",
       .call = programs<4>([](auto&&... xs) { return conv2d_add_relu(xs..., {.padding = 1}); }),
       .oracle = cut_off_convolution({.padding = 1}),
       .operands = {{.fill = between(-1, 1)},
                    {.fill = between(-0.1, 0.1)},
                    {.curved = false},
                    {.fill = large, .curved = false}},
       .shapes = {{{2, 3, 4, 3}, {2, 3, 3, 3}, {2}, {2, 2, 4, 3}},
                  {{1, 16, 3, 3}, {16, 16, 3, 3}, {16}, {1, 16, 3, 3}}},
       .rejected = {{{2, 3, 4, 3}, {2, 3, 3, 3}, {2}, {2, 2, 4, 1}}},
       .ulps = 8,
       .gradient_ulps = 64,
       .error = "conv2d_add_relu"},
      {.name = "conv1d",
       .call =
           programs<3>([](auto&&... xs) { return conv1d(xs..., {.stride = 2, .padding = 1, .groups = 2}); }),
       .oracle =
           [](const std::vector<Reference>& operands) {
             auto images = operands;
             for (int i = 0; i < 2; ++i) {
               const Shape& own = operands[static_cast<std::size_t>(i)].shape;
               images[static_cast<std::size_t>(i)].shape = {own[0], own[1], 1, own[2]};
             }
             Reference y = convolution({.stride = {1, 2}, .padding = {0, 1}, .groups = 2})(images);
             y.shape = {y.shape[0], y.shape[1], y.shape[3]};
             return y;
           },
       .operands = {{}, {}, {.curved = false}},
       .shapes = {{{2, 4, 7}, {6, 2, 3}, {6}}, {{1, 2, 1}, {2, 1, 2}, {2}}},
       .rejected = {{{2, 4, 1, 7}, {6, 2, 3}, {6}}, {{2, 4, 7}, {6, 2, 3, 1}, {6}}},
       .ulps = 8,
       .gradient_ulps = 64},
      {.name = "conv2d_data_gradient",
       .call = programs<2>(applied(data)),
       .oracle = data_gradient(data),
       .operands = {{}, {}},
       .shapes = {{{2, 3, 3, 2}, {3, 2, 3, 3}},
                  {{1, 16, 3, 2}, {16, 16, 3, 3}},
                  {{0, 3, 3, 2}, {3, 2, 3, 3}}},
       .rejected = {{{2, 3, 3, 3}, {3, 2, 3, 3}}},
       .ulps = 8,
       .gradient_ulps = 64,
       .error = "conv2d_data_gradient"},
      {.name = "conv2d_weight_gradient",
       .call = programs<2>(applied(weight)),
       .oracle = weight_gradient(weight),
       .operands = {{}, {}},
       .shapes = {{{2, 3, 3, 3}, {2, 2, 4, 5}}, {{2, 16, 2, 2}, {2, 16, 3, 4}}, {{0, 3, 3, 3}, {0, 2, 4, 5}}},
       .rejected = {{{2, 3, 3, 4}, {2, 2, 4, 5}}},
       .ulps = 8,
       .gradient_ulps = 64,
       .error = "conv2d_weight_gradient"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Conv2d, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Conv2d, RejectsOptionsThatMakeNoSense) {
  const auto x = Float::ones({1, 2, 4, 4}), w = Float::ones({2, 2, 3, 3});
  EXPECT_THROW(conv2d(x, w, {.stride = 0}), ShapeError);
  EXPECT_THROW(conv2d(x, w, {.padding = -1}), ShapeError);
  EXPECT_THROW(conv2d(x, w, {.dilation = 0}), ShapeError);
  EXPECT_THROW(conv2d(x, w, {.groups = 0}), ShapeError);
  EXPECT_THROW(conv2d(x, w, {.groups = 3}), ShapeError);
}

TEST(Conv2d, OfAPixelThatIsNotFiniteIsSeenOnlyWhereTheKernelReaches) {
  for (const std::int64_t n : {1, 32}) {
    Rng rng{1};
    const auto w = Float::normal({16, 16, 3, 3}, 0, 1, rng);
    auto x = Float::normal({n, 16, 1, 3}, 0, 1, rng);
    x.mutable_data()[2] = INFINITY;
    const auto y = conv2d(x, w, {.padding = 1}).to_host();
    EXPECT_TRUE(std::isfinite(y[0])) << n;
    EXPECT_FALSE(std::isfinite(y[1])) << n;
  }
}

TEST(Conv2d, OfOneDimensionIsThatOfImagesOfOneRow) {
  const auto x = Double::from_host(std::vector<double>{1, 2, 3, 4, 5}, {1, 1, 5});
  const auto w = Double::from_host(std::vector<double>{1, 0, -1}, {1, 1, 3});
  const auto y = conv1d(x, w, {.stride = {7, 2}, .padding = 1});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(y.to_host(), (std::vector<double>{-2, -2, 4}));
}

/// Holds an algorithm while in scope.
struct Algorithm {
  explicit Algorithm(cpu::ConvAlgorithm algorithm) { cpu::set_conv_algorithm(algorithm); }
  ~Algorithm() { cpu::set_conv_algorithm(cpu::ConvAlgorithm::direct); }
};

double relative_difference(const Float& a, const Float& b) {
  const auto x = a.to_host(), y = b.to_host();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
    size += std::pow(static_cast<double>(y[i]), 2);
  }
  return std::sqrt(difference / size);
}

#if TAUT_HAS_ONEDNN
TEST(Conv2d, GivesTheSameByWinogradsAlgorithm) {
  struct Layer {
    Shape x;
    std::int64_t out, padding = 1;
  };
  // ResNet-18's shapes, sides that tiles do not fill, several images for several threads, other paddings and
  // channels.
  for (const auto& [shape, out, padding] : std::vector<Layer>{{{1, 64, 32, 32}, 64},
                                                              {{1, 128, 16, 16}, 128},
                                                              {{1, 256, 8, 8}, 256},
                                                              {{1, 512, 4, 4}, 512},
                                                              {{7, 32, 5, 9}, 32},
                                                              {{3, 16, 13, 2}, 48},
                                                              {{5, 80, 6, 3}, 16},
                                                              {{2, 16, 7, 6}, 32, 0},
                                                              {{2, 32, 3, 8}, 16, 2},
                                                              {{67, 16, 32, 32}, 16}}) {
    const op::Conv2d same{.padding = padding};
    const Shape kernels{out, shape[1], 3, 3}, y = same.shape(shape, kernels);
    if (!cpu::detail::winograd_applies(cpu::ConvGeometry(same, shape, kernels, y)))
      GTEST_SKIP() << "images do not lie in blocks of what this program was compiled for";
    Rng rng{1};
    const auto x = Float::normal(shape, 0, 1, rng), w = Float::normal(kernels, 0, 0.1f, rng),
               g = Float::normal(y, 0, 1, rng), bias = Float::normal({out}, 0, 1, rng);
    const auto results = [&](cpu::ConvAlgorithm algorithm) {
      const Algorithm scope(algorithm);
      return std::vector<Float>{conv2d(x, w, same),
                                eval(op::Conv2dDataGradient{same, {shape[2], shape[3]}}, g, w),
                                eval(op::Conv2dWeightGradient{same, {3, 3}}, g, x),
                                conv2d(x, w, bias, same),
                                conv2d_relu(x, w, bias, same),
                                conv2d_add_relu(x, w, bias, g, same)};
    };
    const auto direct = results(cpu::ConvAlgorithm::direct), chosen = results(cpu::ConvAlgorithm::automatic);
    for (const int threads : {1, 2, 3}) {
      set_threads(threads);
      const auto winograd = results(cpu::ConvAlgorithm::winograd);
      for (std::size_t i = 0; i < direct.size(); ++i) {
        const double difference = relative_difference(winograd[i], direct[i]);
        EXPECT_LT(difference, 1e-5) << to_string(shape) << ", " << i;
        EXPECT_GT(difference, 0) << to_string(shape) << ", " << i << ": not another algorithm";
        EXPECT_LT(relative_difference(chosen[i], direct[i]), 1e-5) << to_string(shape) << ", " << i;
      }
    }
    set_threads(2);
  }
}

TEST(Conv2d, ThatIsCutOffKeepsNaN) {
  for (const auto algorithm : {cpu::ConvAlgorithm::direct, cpu::ConvAlgorithm::winograd}) {
    const Algorithm scope(algorithm);
    auto x = Float::ones({1, 16, 4, 4});
    x.mutable_data()[5] = NAN;
    const auto w = Float::ones({16, 16, 3, 3}), bias = Float::zeros({16}), y = Float::ones({1, 16, 4, 4});
    EXPECT_TRUE(std::isnan(conv2d_relu(x, w, bias, {.padding = 1}).to_host()[5]));
    EXPECT_TRUE(std::isnan(conv2d_add_relu(x, w, bias, y, {.padding = 1}).to_host()[5]));
  }
}

TEST(Conv2d, KeepsTransformedKernelsFromTheSecondUseOn) {
  const Algorithm scope(cpu::ConvAlgorithm::winograd);
  Rng rng{1};
  const auto x = Float::normal({1, 16, 4, 4}, 0, 1, rng);
  auto w = Float::normal({16, 16, 3, 3}, 0, 1, rng);
  if (!cpu::detail::winograd_applies(cpu::ConvGeometry({.padding = 1}, x.shape(), w.shape(), x.shape())))
    GTEST_SKIP() << "images do not lie in blocks of what this program was compiled for";
  const auto conversions_of = [&](int calls) {
    const auto start = cpu::conversions().kernels;
    for (int i = 0; i < calls; ++i) conv2d(x, w, {.padding = 1});
    return cpu::conversions().kernels - start;
  };
  EXPECT_EQ(conversions_of(4), 2);
  w = std::move(w) * 2.0f;  // in place
  EXPECT_EQ(conversions_of(4), 2);
}

// A trial would convert the kernels for both.
TEST(Conv2d, TriesNoWinogradWhereItsKernelsOutweighTheImages) {
  const Algorithm scope(cpu::ConvAlgorithm::automatic);
  Rng rng{1};
  const auto x = Float::normal({1, 128, 4, 4}, 0, 1, rng), w = Float::normal({128, 128, 3, 3}, 0, 1, rng);
  const auto start = cpu::conversions().kernels;
  conv2d(x, w, {.padding = 1});
  EXPECT_EQ(cpu::conversions().kernels, start + 1);
}

TEST(Conv2d, KeepsKernelsForEachPaddingTheyMeet) {
  Rng rng{1};
  const auto w = Float::normal({16, 16, 3, 3}, 0, 1, rng);
  const auto square = Float::normal({2, 16, 2, 2}, 0, 1, rng), flat = Float::normal({2, 16, 1, 2}, 0, 1, rng);
  const auto results = [&](const Float& kernels) {
    return std::pair{conv2d(square, kernels, {.stride = 2, .padding = 1}).to_host(),
                     conv2d(flat, kernels, {.padding = 1}).to_host()};
  };
  const auto alone = std::pair{conv2d(square, w + 0.0f, {.stride = 2, .padding = 1}).to_host(),
                               conv2d(flat, w + 0.0f, {.padding = 1}).to_host()};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results(w), alone);
}

TEST(Conv2d, KeepsNothingWithKernelsOfNoMemory) {
  const auto none = reshape(Float(), {0, 4, 3, 3});
  EXPECT_EQ(conv2d(Float::ones({2, 4, 2, 2}), none, {.stride = 2, .padding = 1}).shape(),
            (Shape{2, 0, 1, 1}));
  EXPECT_EQ(conv2d(Float::ones({2, 4, 1, 1}), none, {.padding = 1}).shape(), (Shape{2, 0, 1, 1}));
}

TEST(Conv2d, ConvertsKernelsOncePerUpdate) {
  // As they are, as a matrix, and without the places that only meet padding.
  for (const auto& [side, stride] : {std::pair{4, 1}, {1, 1}, {2, 2}}) {
    Rng rng{1};
    const auto x = Float::normal({2, 16, side, side}, 0, 1, rng);
    auto w = Float::normal({16, 16, 3, 3}, 0, 1, rng);
    const op::Conv2d conv{.stride = stride, .padding = 1};
    const auto start = cpu::conversions().kernels;
    const auto before = conv2d(x, w, conv).to_host();
    EXPECT_EQ(conv2d(x, w, conv).to_host(), before);
    EXPECT_EQ(cpu::conversions().kernels, start + 1) << side;
    w = std::move(w) * 2.0f;  // in place
    const auto after = conv2d(x, w, conv).to_host();
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(after[i], 2 * before[i]);
    EXPECT_EQ(cpu::conversions().kernels, start + 2) << side;
  }
}
#endif

TEST(Conv2d, GivesWhatPyTorchDoesAtEdgePoints) {
  std::map<std::string, Programs> programs{
      {"conv2d_odd",
       ::taut::test::programs<3>([](auto&&... xs) { return conv2d(xs..., {.stride = 2, .padding = 1}); })},
      {"conv2d_groups",
       ::taut::test::programs<2>([](auto&&... xs) { return conv2d(xs..., {.dilation = 2, .groups = 2}); })},
      {"conv2d_one_pixel",
       ::taut::test::programs<2>([](auto&&... xs) { return conv2d(xs..., {.padding = 1}); })},
  };
  EXPECT_TRUE(none(check_fixtures("conv2d", programs, {.ulps = 16})));
}

}  // namespace
}  // namespace taut::test
