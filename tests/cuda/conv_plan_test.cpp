// cuDNN's plans for the convolutions of the networks that Taut's speed is published for (bench/workload.hpp),
// on devices that are only described: devices/*.json. No GPU is needed.

#include "conv_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../../bench/workload.hpp"
#include "taut/core/random.hpp"
#include "taut/op/conv2d.hpp"
#include "taut/op/operator.hpp"

namespace {

using taut::Mode;
using taut::Shape;
using taut::cuda::ConvGeometry;
using taut::cuda::ConvKind;
using taut::cuda::ConvProblem;
using taut::cuda::Descriptor;

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

  static inline std::vector<Convolution> convolutions;

 private:
  Shape shape_;
};

template <class Op, std::same_as<Recorder>... Xs>
Recorder eval(const Op& op, const Recorder& x, const Xs&... xs) {
  const Shape shape = taut::infer_shape(op, x.shape(), xs.shape()...);
  if constexpr (std::same_as<Op, taut::op::Conv2d>) {
    const Shape operands[] = {xs.shape()...};
    Recorder::convolutions.push_back({{op, x.shape(), operands[0], shape}, sizeof...(xs) == 2});
  }
  return Recorder(shape);
}

/// How many convolutions a network has, and how many that differ.
struct Counts {
  std::size_t all, different;
};

Counts counts_of(bench::Network network) {
  switch (network) {
    case bench::Network::mlp:
      return {0, 0};
    case bench::Network::seed:
    case bench::Network::cifar:
      return {20, 11};
    case bench::Network::frost:
      break;
  }
  return {21, 8};
}

/// The different convolutions of a workload's network, all of which must have been found.
std::vector<Convolution> convolutions_of(const bench::Workload& workload, std::int64_t batch) {
  Recorder::convolutions.clear();
  taut::Rng rng{1};
  bench::with_network<Recorder>(workload, rng, [&](const auto& network) {
    network(Recorder(workload.batch_shape(batch)), Mode::eval);
  });
  std::vector<Convolution> different;
  for (const Convolution& convolution : Recorder::convolutions)
    if (std::find(different.begin(), different.end(), convolution) == different.end())
      different.push_back(convolution);
  const Counts counts = counts_of(workload.network);
  EXPECT_EQ(Recorder::convolutions.size(), counts.all);
  EXPECT_EQ(different.size(), counts.different);
  return different;
}

std::string json_of(const std::string& device) {
  std::ifstream file(TAUT_TEST_DEVICES "/" + device + ".json");
  EXPECT_TRUE(file) << device;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Plans for the problem on the device must be there.
void expect_plans(const ConvProblem& problem, const Descriptor& device) {
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
}

class ConvPlans : public testing::TestWithParam<const char*> {};

TEST_P(ConvPlans, FinaliseForTheTrainingOfTheNetworks) {
  const Descriptor device = taut::cuda::describe_device(json_of(GetParam()));
  for (const auto& workload : bench::workloads) {
    SCOPED_TRACE(workload.name);
    for (const Convolution& convolution : convolutions_of(workload, workload.batch))
      for (const bool half : {false, true})
        for (const auto kind : {ConvKind::forward, ConvKind::data_gradient, ConvKind::weight_gradient}) {
          ConvProblem problem{.kind = kind, .geometry = convolution.geometry, .half = half};
          problem.bias = kind == ConvKind::forward && convolution.bias;
          expect_plans(problem, device);
        }
  }
}

// As they were trained, or with a bias for each convolution, its normalisation's, and one of these endings.
TEST_P(ConvPlans, FinaliseForTheInferenceOfTheNetworks) {
  const Descriptor device = taut::cuda::describe_device(json_of(GetParam()));
  for (const auto& workload : bench::workloads)
    for (const std::int64_t batch : {1, 256}) {
      SCOPED_TRACE(std::string(workload.name) + ", batch " + std::to_string(batch));
      for (const Convolution& convolution : convolutions_of(workload, batch))
        for (const bool half : {false, true}) {
          ConvProblem problem{.geometry = convolution.geometry, .half = half, .bias = convolution.bias};
          expect_plans(problem, device);
          problem.bias = problem.relu = true;
          for (const bool residual : {false, true}) {
            problem.residual = residual;
            expect_plans(problem, device);
          }
        }
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
