// cuDNN's plans for the convolutions of the networks that Taut's speed is published for, on devices that are
// only described: devices/*.json. No GPU is needed.

#include "conv_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "taut/core/random.hpp"
#include "taut/nn/lenet.hpp"
#include "taut/nn/resnet.hpp"
#include "taut/op/conv2d.hpp"
#include "taut/op/operator.hpp"

namespace {

using taut::Mode;
using taut::Shape;
using taut::cuda::ConvGeometry;
using taut::cuda::ConvKind;
using taut::cuda::ConvProblem;
using taut::cuda::Descriptor;
namespace nn = taut::nn;

/// A convolution of a network.
struct Convolution {
  ConvGeometry geometry;
  bool bias;

  bool operator==(const Convolution&) const = default;
};

/// A tensor of which only the shape is known, and which takes down the convolutions that it goes through.
class Recorder {
 public:
  using tensor_tag = void;
  using Element = float;
  using Index = Recorder;

  Recorder() = default;
  explicit Recorder(const Shape& shape) : shape_(shape) {}

  static Recorder full(const Shape& shape, float) { return Recorder(shape); }
  static Recorder zeros(const Shape& shape) { return Recorder(shape); }
  static Recorder ones(const Shape& shape) { return Recorder(shape); }
  static Recorder uniform(const Shape& shape, float, float, taut::Rng&) { return Recorder(shape); }
  static Recorder normal(const Shape& shape, float, float, taut::Rng&) { return Recorder(shape); }

  const Shape& shape() const { return shape_; }

  static inline std::vector<Convolution> convolutions;  ///< each different one once

 private:
  Shape shape_;
};

template <class Op, std::same_as<Recorder>... Xs>
Recorder eval(const Op& op, const Recorder& x, const Xs&... xs) {
  const Shape shape = taut::infer_shape(op, x.shape(), xs.shape()...);
  if constexpr (std::same_as<Op, taut::op::Conv2d>) {
    const Shape operands[] = {xs.shape()...};
    const Convolution convolution{{op, x.shape(), operands[0], shape}, sizeof...(xs) == 2};
    auto& known = Recorder::convolutions;
    if (std::find(known.begin(), known.end(), convolution) == known.end()) known.push_back(convolution);
  }
  return Recorder(shape);
}

struct Network {
  std::string name;
  void (*run)();
};

const Network networks[] = {
    {"mnist-lenet",
     [] {
       taut::Rng rng{1};
       nn::LeNet<Recorder>::make(1, 28, 10, rng)(Recorder({64, 1, 28, 28}));
     }},
    {"seed-resnet18",
     [] {
       taut::Rng rng{1};
       nn::ResNet<Recorder>::make({.classes = 10, .conv_bias = true}, rng)(Recorder({128, 3, 32, 32}),
                                                                           Mode::eval);
     }},
    {"cifar-resnet18",
     [] {
       taut::Rng rng{1};
       nn::resnet18<Recorder>(10, nn::Stem::cifar, rng)(Recorder({128, 3, 32, 32}), Mode::eval);
     }},
    {"frost-resnet20",
     [] {
       taut::Rng rng{1};
       nn::cifar_resnet<Recorder>(20, 10, rng)(Recorder({32, 3, 32, 32}), Mode::eval);
     }},
};

std::vector<Convolution> convolutions_of(const Network& network) {
  Recorder::convolutions.clear();
  network.run();
  return Recorder::convolutions;
}

std::string json_of(const std::string& device) {
  std::ifstream file(TAUT_TEST_DEVICES "/" + device + ".json");
  EXPECT_TRUE(file) << device;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The plans of a problem on a device, which must be there.
std::size_t expect_plans(const ConvProblem& problem, const Descriptor& device) {
  const auto plans = plan_convolution(problem, device, 4);
  EXPECT_FALSE(plans.empty()) << to_string(problem.geometry.x()) << " x "
                              << to_string(problem.geometry.kernels()) << " kind "
                              << static_cast<int>(problem.kind) << " half " << problem.half << " bias "
                              << problem.bias << " residual " << problem.residual << " ReLU " << problem.relu;
  EXPECT_LE(plans.size(), 4u);
  for (const auto& plan : plans) {
    EXPECT_GE(plan.workspace, 0);
    EXPECT_LE(plan.workspace, std::int64_t{1} << 30);
  }
  return plans.size();
}

class ConvPlans : public testing::TestWithParam<const char*> {};

TEST_P(ConvPlans, FinaliseForAllConvolutionsOfTheNetworks) {
  const Descriptor device = taut::cuda::describe_device(json_of(GetParam()));
  for (const Network& network : networks) {
    SCOPED_TRACE(network.name);
    const auto convolutions = convolutions_of(network);
    ASSERT_GE(convolutions.size(), 2u);
    std::size_t problems = 0, plans = 0;
    for (const Convolution& convolution : convolutions)
      for (const bool half : {false, true})
        for (const auto kind : {ConvKind::forward, ConvKind::data_gradient, ConvKind::weight_gradient}) {
          ConvProblem problem{.kind = kind, .geometry = convolution.geometry, .half = half};
          problem.bias = kind == ConvKind::forward && convolution.bias;
          plans += expect_plans(problem, device);
          ++problems;
        }
    std::printf("%s on %s: %zu convolutions, %zu problems, %zu plans\n", network.name.c_str(), GetParam(),
                convolutions.size(), problems, plans);
  }
}

// For inference each convolution has a bias, its normalisation's, and one of these endings.
TEST_P(ConvPlans, FinaliseForTheEndingsOfTheNetworks) {
  const Descriptor device = taut::cuda::describe_device(json_of(GetParam()));
  for (const Network& network : networks) {
    SCOPED_TRACE(network.name);
    for (const Convolution& convolution : convolutions_of(network))
      for (const bool half : {false, true})
        for (const bool residual : {false, true})
          expect_plans({.geometry = convolution.geometry,
                        .half = half,
                        .bias = true,
                        .residual = residual,
                        .relu = true},
                       device);
  }
}

TEST_P(ConvPlans, ExistForEveryOption) {
  const Descriptor device = taut::cuda::describe_device(json_of(GetParam()));
  struct Case {
    Shape x, w;
    taut::op::Conv2d op;
  };
  const Case cases[] = {{{8, 16, 9, 10}, {8, 2, 3, 3}, {.padding = 2, .dilation = 2, .groups = 8}},
                        {{8, 16, 9, 9}, {16, 1, 3, 3}, {.padding = 1, .groups = 16}},
                        {{8, 5, 9, 9}, {7, 5, 3, 2}, {.stride = {2, 1}, .padding = {5, 0}}},
                        {{8, 4, 1, 90}, {4, 4, 1, 3}, {.padding = {0, 1}}},
                        {{1, 1, 1, 1}, {1, 1, 1, 1}, {}}};
  for (const Case& c : cases)
    for (const bool half : {false, true})
      for (const auto kind : {ConvKind::forward, ConvKind::data_gradient, ConvKind::weight_gradient})
        expect_plans({.kind = kind, .geometry = {c.op, c.x, c.w, c.op.shape(c.x, c.w)}, .half = half},
                     device);
}

TEST_P(ConvPlans, RoundToTf32OnlyWhereThatIsAllowed) {
  const Descriptor device = taut::cuda::describe_device(json_of(GetParam()));
  const Shape x{128, 64, 8, 8}, w{64, 64, 3, 3};
  const taut::op::Conv2d op{.padding = 1};
  ConvProblem problem{.geometry = {op, x, w, op.shape(x, w)}};
  const auto precise = plan_convolution(problem, device, 100);
  problem.tf32 = true;
  const auto rounding = plan_convolution(problem, device, 100);
  EXPECT_GE(precise.size(), 1u);
  EXPECT_GT(rounding.size(), precise.size()) << "tensor cores come in";
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvPlans, testing::Values("h200", "a100", "rtx4090"),
                         [](const auto& device) { return std::string(device.param); });

TEST(ConvPlan, IsRefusedForWhatIsNoDevice) {
  EXPECT_THROW(taut::cuda::describe_device("{\"deviceVer\": }"), taut::DeviceError);
}

TEST(ConvProblem, HasAKeyOfItsOwnForEachDifference) {
  const Shape x{8, 4, 9, 9}, w{6, 4, 3, 3};
  const auto problem = [&](const taut::op::Conv2d& op) {
    return ConvProblem{.geometry = {op, x, w, op.shape(x, w)}};
  };
  std::vector<ConvProblem> problems{problem({}),
                                    problem({.stride = {2, 1}}),
                                    problem({.stride = {1, 2}}),
                                    problem({.padding = {1, 0}}),
                                    problem({.padding = {0, 1}}),
                                    problem({.dilation = {2, 1}}),
                                    problem({.dilation = {1, 2}})};
  for (bool ConvProblem::*flag : {&ConvProblem::half, &ConvProblem::bias, &ConvProblem::residual,
                                  &ConvProblem::relu, &ConvProblem::tf32})
    problems.push_back(problem({})), problems.back().*flag = true;
  for (const auto kind : {ConvKind::data_gradient, ConvKind::weight_gradient})
    problems.push_back(problem({})), problems.back().kind = kind;
  for (std::size_t i = 0; i < problems.size(); ++i)
    for (std::size_t j = 0; j < problems.size(); ++j)
      EXPECT_EQ(problems[i].key() == problems[j].key(), i == j) << i << " " << j;
}

}  // namespace
