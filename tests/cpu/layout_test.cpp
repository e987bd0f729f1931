// Layouts of images: conversions, and that operators give the same whatever the layout of their operands.

#include <gtest/gtest.h>

#include <taut/concepts.hpp>
#include <taut/cpu/cpu.hpp>
#include <taut/interpret/grad.hpp>
#include <taut/optim/sgd.hpp>

#include <cmath>
#include <functional>
#include <thread>

using namespace taut;
using cpu::Layout;

namespace {

constexpr Layout layouts[] = {Layout::dense, Layout::channels_last, Layout::blocked8, Layout::blocked16};

template <class A> A in_layout(const A& x, Layout layout) {
  A result = A::uninitialized(x.shape(), layout);
  std::copy_n(x.data(layout), x.shape().size(), result.mutable_data());
  return result;
}

CpuArray image(const Shape& shape, std::uint64_t seed = 1) {
  Rng rng{seed};
  return CpuArray::normal(shape, 0, 1, rng);
}

TEST(Layout, PutsChannelsTogether) {
  const auto x = image({2, 16, 3, 2});
  const auto dense = x.to_host();
  const auto at = [&](std::size_t n, std::size_t c, std::size_t pixel) {
    return dense[(n * 16 + c) * 6 + pixel];
  };
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 16; ++c)
      for (std::size_t pixel = 0; pixel < 6; ++pixel) {
        EXPECT_EQ(x.data(Layout::channels_last)[(n * 6 + pixel) * 16 + c], at(n, c, pixel));
        EXPECT_EQ(x.data(Layout::blocked16)[(n * 6 + pixel) * 16 + c], at(n, c, pixel));
        EXPECT_EQ(x.data(Layout::blocked8)[((n * 2 + c / 8) * 6 + pixel) * 8 + c % 8], at(n, c, pixel));
      }
}

TEST(Layout, ConvertsEachWayAndBack) {
  for (const Shape& shape :
       {Shape{2, 16, 3, 5}, {1, 32, 7, 1}, {3, 48, 1, 1}, {2, 16, 40, 33}, {0, 16, 2, 2}}) {
    const auto x = image(shape);
    for (const auto a : layouts)
      for (const auto b : layouts) {
        const auto there = in_layout(in_layout(x, a), b);
        EXPECT_EQ(there.layout(), b);
        EXPECT_EQ(there.to_host(), x.to_host()) << to_string(shape);
      }
  }
}

TEST(Layout, IsConvertedOnceForAllCopies) {
  const auto x = in_layout(image({2, 16, 3, 3}), Layout::blocked16);
  const auto copy = x;
  const auto before = cpu::conversions().count;
  const float* const dense = x.data();
  EXPECT_EQ(copy.data(), dense);
  EXPECT_EQ(cpu::conversions().count, before + 1);
}

TEST(Layout, FormsAreDroppedWhereTheArrayIsWrittenTo) {
  auto x = in_layout(image({2, 16, 3, 3}), Layout::blocked16);
  const auto before = x.to_host();
  x = std::move(x) + 1.0f;  // in place
  const auto after = x.to_host();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i] + 1);
}

TEST(Layout, SeveralThreadsMayConvertTheSameArray) {
  const auto x = in_layout(image({2, 16, 30, 30}), Layout::blocked16);
  const auto expected = image({2, 16, 30, 30}).to_host();
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([x, &result] { result = x.to_host(); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(Layout, IsKeptByElementwiseOperators) {
  const auto a = image({2, 16, 3, 3}), b = image({2, 16, 3, 3}, 2);
  const auto expected = (relu(a) * b + 1.0f).to_host();
  for (const auto layout : layouts) {
    const auto y = relu(in_layout(a, layout)) * b + 1.0f;
    EXPECT_EQ(y.layout(), layout);
    EXPECT_EQ(y.to_host(), expected);
  }
}

CpuArray cast(const CpuArray::Index& indices) {
  const auto values = indices.to_host();
  return CpuArray::from_host(std::vector<float>(values.begin(), values.end()), indices.shape());
}

/// An operator of two images, and what it is called.
struct Program {
  const char* name;
  std::function<CpuArray(const CpuArray& x, const CpuArray& y)> run;
};

const CpuArray kernels = image({16, 16, 3, 3}, 3), weight = image({16}, 4), bias = image({16}, 5);

const Program programs[] = {
    {"add", [](const auto& x, const auto& y) { return x + y; }},
    {"broadcast",
     [](const auto& x, const auto& y) {
       return x * reshape(weight, {16, 1, 1}) - y;
     }},
    {"where", [](const auto& x, const auto& y) { return where(gt(x, y), x, y); }},
    {"sum", [](const auto& x, const auto& y) { return sum(x * y); }},
    {"channel sums",
     [](const auto& x, const auto& y) {
       return sum(x + y, {0, 2, 3});
     }},
    {"argmax", [](const auto& x, const auto& y) { return x + y * cast(argmax(x * y, 1, true)); }},
    {"dropout",
     [](const auto& x, const auto& y) {
       Rng rng{1};
       return dropout(x + y, 0.5, Mode::train, rng);
     }},
    {"max", [](const auto& x, const auto& y) { return max(maximum(x, y), {1}); }},
    {"reshape",
     [](const auto& x, const auto& y) {
       return reshape(x, {2, 16 * 36}) + reshape(y, {2, 16 * 36});
     }},
    {"permute",
     [](const auto& x, const auto& y) {
       return permute(x, {0, 2, 3, 1}) + permute(y, {0, 2, 3, 1});
     }},
    {"slice", [](const auto& x, const auto& y) { return slice(x, 1, 3, 9) + slice(y, 1, 3, 9); }},
    {"concat", [](const auto& x, const auto& y) { return concat(1, x, y); }},
    {"matmul", [](const auto& x, const auto& y) { return matmul(x, y); }},
    {"softmax", [](const auto& x, const auto& y) { return softmax(x + y, 1); }},
    {"conv2d", [](const auto& x, const auto& y) { return conv2d(x + y, kernels, bias, {.padding = 1}); }},
    {"conv2d of images by images", [](const auto& x, const auto& y) { return conv2d(x, slice(y, 0, 0, 1)); }},
    {"data gradient",
     [](const auto& x, const auto& y) {
       return eval(op::Conv2dDataGradient{{.padding = 1}, {6, 6}}, x * y, kernels);
     }},
    {"weight gradient",
     [](const auto& x, const auto& y) {
       return eval(op::Conv2dWeightGradient{{.padding = 1}, {3, 3}}, x, y);
     }},
    {"max_pool2d",
     [](const auto& x, const auto& y) { return max_pool2d(x + y, {.kernel = 3, .stride = 2}); }},
    {"max_pool2d_gradient",
     [](const auto& x, const auto& y) { return eval(op::MaxPool2dGradient{{.kernel = 1}}, x, y); }},
    {"max_pool2d_pick", [](const auto& x, const auto& y) { return eval(op::MaxPool2dPick{}, x, y); }},
    {"avg_pool2d",
     [](const auto& x, const auto& y) { return avg_pool2d(x + y, {.kernel = 3, .padding = 1}); }},
    {"avg_pool2d_gradient",
     [](const auto& x, const auto& y) {
       return eval(op::ResampleGradient<op::AvgPool2d>{{}, {12, 12}}, x + y);
     }},
    {"global_avg_pool2d", [](const auto& x, const auto& y) { return global_avg_pool2d(x - y); }},
    {"upsample", [](const auto& x, const auto& y) { return upsample_bilinear2d(x + y, 2); }},
    {"batch_statistics", [](const auto& x, const auto& y) { return batch_statistics(x * y); }},
    {"batch_norm",
     [](const auto& x, const auto& y) { return batch_norm(x + y, weight, bias, {.relu = true}); }},
    {"batch_norm_by",
     [](const auto& x, const auto& y) { return batch_norm_by(batch_statistics(y), x, weight, bias); }},
    {"batch_norm_add_relu",
     [](const auto& x, const auto& y) { return batch_norm_add_relu(x, weight, bias, y); }},
    {"batch_norm_sums",
     [](const auto& x, const auto& y) {
       return eval(op::BatchNormSums{{.relu = true}}, x, y, weight, bias, batch_statistics(y));
     }},
    {"batch_norm_gradient",
     [](const auto& x, const auto& y) {
       const auto statistics = batch_statistics(y);
       return eval(op::BatchNormGradient{{.relu = true}}, x, y, weight, bias, statistics, statistics);
     }},
    {"linear",
     [](const auto& x, const auto& y) {
       return linear(x + y, slice(reshape(kernels, {16 * 9, 16}), 1, 0, 6),
                     slice(reshape(kernels, {16 * 16 * 9}), 0, 0, 16 * 9));
     }},
    {"log_softmax", [](const auto& x, const auto& y) { return log_softmax(x + y, 2); }},
    {"min",
     [](const auto& x, const auto& y) {
       return min(x * y, {0, 3});
     }},
    {"unslice",
     [](const auto& x, const auto& y) {
       return eval(op::Unslice{1, 2, 1, 24}, x + y);
     }},
    {"grouped conv2d",
     [](const auto& x, const auto& y) {
       return conv2d(x + y, slice(kernels, 1, 0, 4), {.padding = 1, .groups = 4});
     }},
    {"depthwise conv2d",
     [](const auto& x, const auto& y) { return conv2d(x + y, slice(kernels, 1, 0, 1), {.groups = 16}); }},
    {"upsample gradient",
     [](const auto& x, const auto& y) {
       return eval(op::ResampleGradient<op::Upsample2d>{{.bilinear = true}, {3, 3}}, x + y);
     }},
    {"adaptive gradient",
     [](const auto& x, const auto& y) {
       return eval(op::ResampleGradient<op::AdaptiveAvgPool2d>{{6}, {7, 9}}, x + y);
     }},
    {"instance_norm", [](const auto& x, const auto& y) { return instance_norm(x + y, weight, bias); }},
    {"group_norm", [](const auto& x, const auto& y) { return group_norm(x + y, 4, weight, bias); }},
};

TEST(Layout, MakesNoDifferenceToAnyOperator) {
  cpu::set_conv_algorithm(cpu::ConvAlgorithm::direct);
  const auto x = image({2, 16, 6, 6}), y = image({2, 16, 6, 6}, 2);
  for (const auto& program : programs) {
    const auto expected = program.run(x, y);
    const auto values = expected.to_host();
    for (const auto a : layouts)
      for (const auto b : layouts) {
        const auto result = program.run(in_layout(x, a), in_layout(y, b));
        ASSERT_EQ(result.shape(), expected.shape()) << program.name;
        const auto got = result.to_host();
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], values[i], 1e-5f * (1 + std::abs(values[i])) * 10)
              << program.name << ", layouts " << static_cast<int>(a) << " and " << static_cast<int>(b);
      }
  }
}

TEST(Layout, MakesNoDifferenceToConvolutionsOfSmallImages) {
  for (const std::int64_t side : {1, 2}) {
    const auto x = image({32, 16, side, side}), y = image({32, 16, side, side}, 2);
    const auto run = [&](const CpuArray& a, const CpuArray& b) {
      return std::vector<std::vector<float>>{
          conv2d(a, kernels, bias, {.padding = 1}).to_host(),
          conv2d(a, slice(kernels, 0, 0, 3), {.padding = 1}).to_host(),
          eval(op::Conv2dDataGradient{{.padding = 1}, {side, side}}, b, kernels).to_host(),
          eval(op::Conv2dWeightGradient{{.padding = 1}, {3, 3}}, b, a).to_host()};
    };
    const auto expected = run(x, y);
    for (const auto a : layouts)
      for (const auto b : layouts) {
        const auto got = run(in_layout(x, a), in_layout(y, b));
        for (std::size_t k = 0; k < got.size(); ++k)
          for (std::size_t i = 0; i < got[k].size(); ++i)
            ASSERT_NEAR(got[k][i], expected[k][i], 1e-4f * (1 + std::abs(expected[k][i])))
                << side << ", " << k;
      }
  }
}

TEST(Layout, OfAParameterMakesNoDifferenceToOptimizers) {
  const auto start = image({1, 16, 2, 2}), gradient = image({1, 16, 2, 2}, 2);
  const auto step = [&](const CpuArray& at) {
    auto parameter = at;
    struct Model {
      Grad<CpuArray> weight;
    } model{Grad<CpuArray>(parameter).track()};
    optim::Sgd sgd{model, {.lr = 0.5}};
    Tape<CpuArray> tape;
    tape.backward(sum(model.weight * gradient));
    sgd.step();
    return model.weight.to_host();
  };
  for (const auto layout : layouts) EXPECT_EQ(step(in_layout(start, layout)), step(start));
}

TEST(Layout, ImagesOfOnePixelAreMatrices) {
  const auto x = image({3, 32, 1, 1});
  const auto before = cpu::conversions().count;
  for (const auto layout : layouts) EXPECT_EQ(reshape(in_layout(x, layout), {3, 32}).to_host(), x.to_host());
  EXPECT_EQ(cpu::conversions().count, before);
}

}  // namespace
