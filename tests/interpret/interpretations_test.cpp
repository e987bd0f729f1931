// Every interpretation satisfies the concepts, and gives its own meaning to one program.
#include <gtest/gtest.h>

#include <taut/taut.hpp>

using namespace taut;
using G = Grad<CpuArray>;

static_assert(DifferentiableTensor<CpuArray>);
static_assert(DifferentiableTensor<BasicCpuArray<double>>);
static_assert(DifferentiableTensor<Profiled<CpuArray>>);
static_assert(DifferentiableTensor<Checked<CpuArray>>);
static_assert(DifferentiableTensor<Grad<CpuArray>>);
static_assert(BlasTensor<ShapeTensor>);
static_assert(BlasTensor<Grad<Grad<BasicCpuArray<double>>>>);
static_assert(BlasTensor<Grad<Checked<Profiled<CpuArray>>>>);
static_assert(ImageTensor<CpuArray> && ImageTensor<ShapeTensor> &&
              ImageTensor<Grad<Checked<Profiled<CpuArray>>>>);
static_assert(ImageTensor<Grad<Grad<BasicCpuArray<double>>>>);
static_assert(DifferentiableImageTensor<CpuArray>);
static_assert(!Tensor<int>);
static_assert(!Tensor<std::vector<float>>);

namespace {

TEST(Profiled, BooksEachOperator) {
  reset_profile();
  const Profiled<CpuArray> x = CpuArray::ones({8, 8});
  (void)matmul(matmul(x, x), exp(x));
  const auto entries = profile_entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.at("matmul").calls, 2);
  EXPECT_EQ(entries.at("matmul").flops, 2 * 2 * 8 * 8 * 8);
  EXPECT_EQ(entries.at("exp").calls, 1);
  EXPECT_GT(entries.at("matmul").seconds, 0);
  const auto report = profile_report();
  EXPECT_NE(report.find("matmul"), std::string::npos);
  EXPECT_NE(report.find("GFLOP/s"), std::string::npos);
}

TEST(Profiled, CountsConversionsOfLayouts) {
  reset_profile();
  auto x = CpuArray::uninitialized({1, 16, 2, 2}, cpu::Layout::blocked16);
  std::fill_n(x.mutable_data(), 64, 1.0f);
  const Profiled<CpuArray> image(x);
  relu(image);
  softmax(image, 1);
  EXPECT_EQ(profile_entries().at("relu").conversions, 0);
  EXPECT_EQ(profile_entries().at("softmax").conversions, 1);
}

TEST(Profiled, TimesTheBackwardPassInsideGrad) {
  reset_profile();
  const auto x = Grad<Profiled<CpuArray>>(Profiled<CpuArray>(CpuArray::ones({4, 4}))).track();
  Tape<Profiled<CpuArray>> tape;
  tape.backward(sum(matmul(x, x)));
  EXPECT_EQ(profile_entries().at("matmul").calls, 3);
}

TEST(Checked, NamesTheOperatorThatWentWrong) {
  const Checked<CpuArray> x = CpuArray::from_host(std::array{1.f, 0.f, 2.f}, {3});
  try {
    (void)(log(x) * 2.0f);
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "log: the result has an infinity at element 1 of shape [3]; operands [3]");
  }
  EXPECT_THROW(sqrt(x - 1.5f), Error);
  EXPECT_EQ(exp(x).to_host().size(), 3u);
  EXPECT_EQ(argmax(x).item(), 2);
}

TEST(Checked, FindsWhatAnActivationWouldCutOff) {
  const Checked<CpuArray> x = CpuArray::full({2, 4}, 3e38f), bias = CpuArray::zeros({3});
  const auto weight = CpuArray::full({3, 4}, -3e38f);  // a constant to `Checked`
  EXPECT_THROW(linear_relu(x, weight, bias), Error);
  EXPECT_EQ(linear_relu(Checked<CpuArray>(CpuArray::full({2, 4}, 0.1f)), weight, bias).to_host(),
            std::vector<float>(6, 0));
  const Checked<CpuArray> image = CpuArray::full({1, 4, 2, 2}, 3e38f);
  EXPECT_THROW(conv2d_relu(image, CpuArray::full({3, 4, 1, 1}, -3e38f), bias), Error);
}

TEST(Checked, WatchesTheBackwardPassInsideGrad) {
  const auto x = Grad<Checked<CpuArray>>(Checked<CpuArray>(CpuArray::zeros({1}))).track();
  Tape<Checked<CpuArray>> tape;
  EXPECT_THROW(tape.backward(sqrt(x)), Error);
}

TEST(Grad, TakesConstantsAmongTheOperandsOfComposites) {
  using G = Grad<BasicCpuArray<double>>;
  const auto x = BasicCpuArray<double>::ones({2, 4});
  const auto weight = G(BasicCpuArray<double>::full({3, 4}, 0.1)).track();
  const auto bias = BasicCpuArray<double>::ones({3});
  Tape<BasicCpuArray<double>> tape;
  const auto y = linear_gelu_tanh(x, weight, bias);
  tape.backward(sum(y));
  const auto got = weight.grad().to_host();
  Tape<BasicCpuArray<double>> other;
  other.backward(sum(gelu_tanh(linear(x, weight, bias))));
  EXPECT_EQ(got, weight.grad().to_host());
}

TEST(Typed, CarriesTheShapeInTheType) {
  const Typed<CpuArray, Shape{2, 3}> a{CpuArray::ones({2, 3})};
  const Typed<CpuArray, Shape{3}> b{CpuArray::full({3}, 2)};
  const auto c = a * b + 1.0f;
  static_assert(c.shape() == Shape{2, 3});
  EXPECT_EQ(c.to_host(), std::vector<float>(6, 3));
  static_assert(decltype(sum(c))::shape() == Shape{});
  static_assert(decltype(apply<op::SumTo{{3}}>(c))::shape() == Shape{3});
  static_assert(decltype(apply<op::Sum{{1}, true}>(c))::shape() == Shape{2, 1});
  EXPECT_EQ(apply<op::SumTo{{3}}>(c).to_host(), std::vector<float>(3, 6));
}

TEST(Typed, RejectsAValueOfAnotherShape) {
  EXPECT_THROW((Typed<CpuArray, Shape{2, 3}>{CpuArray::ones({3, 2})}), ShapeError);
  const Typed<CpuArray, Shape{2, 2}> a{CpuArray::ones({2, 2})};
  EXPECT_NO_THROW(matmul(a, a, {.transpose_b = true}));
  const Typed<CpuArray, Shape{2, 3}> b{CpuArray::ones({2, 3})};
  EXPECT_THROW(sum(b, {1}), ShapeError) << "options that change the shape belong in apply";
}

TEST(Typed, WorksOverGrad) {
  const auto x = G(CpuArray::full({2}, 3)).track();
  Tape<CpuArray> tape;
  const Typed<G, Shape{2}> t{x};
  tape.backward(sum(t * t).value());
  EXPECT_EQ(x.grad().to_host(), std::vector<float>(2, 6));
}

TEST(Nesting, ComposesInAnyOrder) {
  using T = Checked<Profiled<CpuArray>>;
  const auto x = Grad<T>(T(Profiled<CpuArray>(CpuArray::full({1}, 2)))).track();
  Tape<T> tape;
  tape.backward(x * x * x);
  EXPECT_FLOAT_EQ(x.grad().item(), 12);
}

}  // namespace
