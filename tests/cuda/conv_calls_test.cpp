// What conv2d.cpp hands to cuDNN. Plans are cuDNN's own, for a device that is only described; running them is
// left to a model, which finds the operands by the names that the plan knows them by and convolves on the
// host. Results are right only if each pointer has its name. No GPU is needed.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "conv_plan.hpp"
#include "taut/core/bfloat16.hpp"
#include "taut/cuda/buffer.hpp"
#include "taut/cuda/conv2d_launch.hpp"
#include "taut/cuda/precision.hpp"

namespace taut::cuda {

namespace {

/// What the model is to compute, since plans do not tell.
struct Expected {
  ConvKind kind = ConvKind::forward;
  ConvGeometry geometry;
  bool narrow = false;
  bool relu = false;
};

Expected expected;
int executions = 0;  ///< since the program began
bool timing_allowed = true;
std::int64_t largest_workspace = 0;

/// What the model does not do: graphs of more than a convolution, their execution, and NaN in a ReLU.
bool refuses_graphs = false, fails_endings = false, loses_nan = false;
bool fails = false;          ///< nor any execution
bool down_converts = false;  ///< all engines take their operands in a narrower type

/// Calls f with the places in x, w and y of each product of a convolution, channels last.
template <class F> void for_each_product(const ConvGeometry& g, const F& f) {
  const std::int64_t per_group = g.c / g.groups;
  for (std::int64_t n = 0; n < g.n; ++n)
    for (std::int64_t o = 0; o < g.out; ++o)
      for (std::int64_t i = 0; i < g.oh; ++i)
        for (std::int64_t j = 0; j < g.ow; ++j)
          for (std::int64_t c = 0; c < per_group; ++c)
            for (std::int64_t k = 0; k < g.kh; ++k)
              for (std::int64_t l = 0; l < g.kw; ++l) {
                const auto row = i * g.stride.h + k * g.dilation.h - g.padding.h;
                const auto column = j * g.stride.w + l * g.dilation.w - g.padding.w;
                if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
                const auto channel = o / (g.out / g.groups) * per_group + c;
                f(((n * g.h + row) * g.w + column) * g.c + channel,
                  ((o * g.kh + k) * g.kw + l) * per_group + c, ((n * g.oh + i) * g.ow + j) * g.out + o);
              }
}

/// What is added to a convolution, in what is not empty, and whether it is cut off at 0 afterwards.
struct Ending {
  std::vector<float> bias = {}, residual = {};
  bool relu = false;
};

void finish(std::vector<float>& y, const Ending& ending) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!ending.bias.empty()) y[i] += ending.bias[i % ending.bias.size()];
    if (!ending.residual.empty()) y[i] += ending.residual[i];
    if (ending.relu) y[i] = loses_nan ? std::fmax(y[i], 0.0f) : std::max(y[i], 0.0f);
  }
}

/// The result of a kind of convolution of numbers that lie as on the device.
std::vector<float> convolve(ConvKind kind, const ConvGeometry& g, const std::vector<float>& x,
                            const std::vector<float>& w, const std::vector<float>& y,
                            const Ending& ending = {}) {
  const Shape shape = kind == ConvKind::forward         ? g.y()
                      : kind == ConvKind::data_gradient ? g.x()
                                                        : g.kernels();
  std::vector<float> result(static_cast<std::size_t>(shape.size()));
  for_each_product(g, [&](std::int64_t at_x, std::int64_t at_w, std::int64_t at_y) {
    const auto a = static_cast<std::size_t>(at_x), b = static_cast<std::size_t>(at_w),
               c = static_cast<std::size_t>(at_y);
    if (kind == ConvKind::forward) result[c] += x[a] * w[b];
    if (kind == ConvKind::data_gradient) result[a] += y[c] * w[b];
    if (kind == ConvKind::weight_gradient) result[b] += y[c] * x[a];
  });
  finish(result, ending);
  return result;
}

std::vector<float> read(const void* memory, std::int64_t count) {
  if (!expected.narrow) return {static_cast<const float*>(memory), static_cast<const float*>(memory) + count};
  return {static_cast<const bfloat16*>(memory), static_cast<const bfloat16*>(memory) + count};
}

void write(const std::vector<float>& values, void* memory) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (expected.narrow)
      static_cast<bfloat16*>(memory)[i] = bfloat16(values[i]);
    else
      static_cast<float*>(memory)[i] = values[i];
}

/// What the pack that is built last holds. cuDNN does not tell afterwards.
struct Pack {
  std::vector<std::int64_t> names;
  std::vector<void*> pointers;
  void* workspace = nullptr;
};

Pack pack;

}  // namespace

/// The device is an H200 that is not there.
Descriptor describe_device(int) {
  std::ifstream file(TAUT_TEST_DEVICES "/h200.json");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  return describe_device(std::string_view(json));
}

bool can_time(Stream) { return timing_allowed; }

}  // namespace taut::cuda

// These stand before the library's own.
extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static int any;
  *handle = reinterpret_cast<cudnnHandle_t>(&any);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  using namespace taut::cuda;
  if (name == CUDNN_ATTR_OPERATIONGRAPH_OPS && count > 1 && refuses_graphs) return CUDNN_STATUS_NOT_SUPPORTED;
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
    pack.names.assign(static_cast<const std::int64_t*>(values),
                      static_cast<const std::int64_t*>(values) + count);
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
    pack.pointers.assign(static_cast<void* const*>(values), static_cast<void* const*>(values) + count);
  if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) pack.workspace = *static_cast<void* const*>(values);
  static const auto library =
      reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  return library(descriptor, name, type, count, values);
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       std::int64_t requested, std::int64_t* count, void* values) {
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && taut::cuda::down_converts) {
    *count = 1;
    *static_cast<cudnnBackendNumericalNote_t*>(values) = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    return CUDNN_STATUS_SUCCESS;
  }
  static const auto library =
      reinterpret_cast<decltype(&cudnnBackendGetAttribute)>(dlsym(RTLD_NEXT, "cudnnBackendGetAttribute"));
  return library(descriptor, name, type, requested, count, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
  using namespace taut::cuda;
  std::int64_t count = 0, bytes = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                     &count, &bytes),
            CUDNN_STATUS_SUCCESS);
  if (pack.names.size() != pack.pointers.size()) return CUDNN_STATUS_BAD_PARAM;
  if (bytes > 0) std::memset(pack.workspace, 0, static_cast<std::size_t>(bytes));
  largest_workspace = std::max(largest_workspace, bytes);
  std::map<std::int64_t, void*> at;
  for (std::size_t i = 0; i < pack.names.size(); ++i) at[pack.names[i]] = pack.pointers[i];
  if (fails || (fails_endings && at.count(operand_bias))) return CUDNN_STATUS_EXECUTION_FAILED;
  ++executions;
  const ConvGeometry& g = expected.geometry;
  const bool forward = expected.kind == ConvKind::forward, data = expected.kind == ConvKind::data_gradient;
  const auto x = data ? std::vector<float>() : read(at.at(operand_x), g.x().size());
  const auto w = expected.kind == ConvKind::weight_gradient ? std::vector<float>()
                                                            : read(at.at(operand_w), g.kernels().size());
  const auto y = forward ? std::vector<float>() : read(at.at(operand_y), g.y().size());
  Ending ending{.relu = expected.relu};
  if (at.count(operand_bias)) ending.bias = read(at.at(operand_bias), g.out);
  if (at.count(operand_residual)) ending.residual = read(at.at(operand_residual), g.y().size());
  write(convolve(expected.kind, g, x, w, y, ending), at.at(forward ? operand_y
                                                           : data  ? operand_x
                                                                   : operand_w));
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"

namespace taut::cuda {
namespace {

template <class E> class OnDevice {
 public:
  explicit OnDevice(const std::vector<float>& values)
      : buffer_(Buffer::allocate(values.size() * sizeof(E))), count_(values.size()) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = E(values[i]);
  }
  E* data() { return reinterpret_cast<E*>(buffer_.data()); }
  std::vector<float> host() { return {data(), data() + count_}; }

 private:
  Buffer buffer_;
  std::size_t count_;
};

/// Numbers of which sums of few products are exact in both types.
std::vector<float> numbers(const Shape& shape) {
  static std::mt19937 random(1);
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 3) - 1);
  return values;
}

template <class E> void check(const op::Conv2d& op, const Shape& x_shape, const Shape& w_shape) {
  const ConvGeometry g(op, x_shape, w_shape, op.shape(x_shape, w_shape));
  const auto x = numbers(g.x()), w = numbers(g.kernels()), y = numbers(g.y()), bias = numbers({g.out});
  OnDevice<E> on_x(x), on_w(w), on_y(y), on_bias(bias);
  OnDevice<E> result(std::vector<float>(y.size())), dx(std::vector<float>(x.size())),
      dw(std::vector<float>(w.size()));
  const Stream stream = current_stream();
  const auto expect = [&](ConvKind kind) { expected = {kind, g, sizeof(E) == 2}; };

  expect(ConvKind::forward);
  const auto expect_forward = [&](const ConvEnding<E>& pointers, const Ending& ending) {
    expected.relu = ending.relu;
    const bool done = launch_conv2d<E>(g, on_x.data(), on_w.data(), pointers, result.data(), stream);
    if (done) {
      EXPECT_EQ(result.host(), convolve(ConvKind::forward, g, x, w, {}, ending));
    }
    return done;
  };
  EXPECT_TRUE(expect_forward({}, {}));
  int endings = 0;
  endings += expect_forward({on_bias.data()}, {bias});
  endings += expect_forward({on_bias.data(), nullptr, true}, {bias, {}, true});
  endings += expect_forward({on_bias.data(), on_y.data(), true}, {bias, y, true});
  EXPECT_TRUE(endings == 3 || op.groups > 1) << endings;
  expect(ConvKind::data_gradient);
  launch_conv2d_data_gradient<E>(g, on_y.data(), on_w.data(), dx.data(), stream);
  EXPECT_EQ(dx.host(), convolve(ConvKind::data_gradient, g, {}, w, y));
  expect(ConvKind::weight_gradient);
  launch_conv2d_weight_gradient<E>(g, on_y.data(), on_x.data(), dw.data(), stream);
  EXPECT_EQ(dw.host(), convolve(ConvKind::weight_gradient, g, x, {}, y));
}

TEST(Cudnn, GetsEachOperandUnderItsName) {
  for (int repetition = 0; repetition < 2; ++repetition) {
    check<float>({.padding = 1}, {2, 4, 5, 6}, {8, 4, 3, 3});
    check<bfloat16>({.padding = 1}, {2, 4, 5, 6}, {8, 4, 3, 3});
    check<float>({.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 2}}, {1, 3, 7, 8}, {2, 3, 3, 2});
    check<float>({.groups = 2}, {2, 4, 4, 4}, {6, 2, 2, 2});
  }
  EXPECT_GT(largest_workspace, 0) << "some plan takes working memory";
}

/// A convolution on the device, with a geometry of its own each time.
class Convolution {
 public:
  /// Whether the convolution with an ending was computed at once.
  bool run(bool bias, bool residual = false, bool relu = false) {
    expected = {ConvKind::forward, g_, false, relu};
    return launch_conv2d<float>(g_, x_.data(), w_.data(),
                                {bias ? bias_.data() : nullptr, residual ? residual_.data() : nullptr, relu},
                                y_.data(), current_stream());
  }

 private:
  static inline std::int64_t height_ = 5;
  Shape x_shape_{2, 8, ++height_, 6}, w_shape_{8, 8, 3, 3};
  op::Conv2d op_;
  ConvGeometry g_{op_, x_shape_, w_shape_, op_.shape(x_shape_, w_shape_)};
  OnDevice<float> x_{numbers(x_shape_)}, w_{numbers(w_shape_)}, bias_{numbers({8})},
      residual_{numbers(g_.y())}, y_{numbers(g_.y())};
};

TEST(Cudnn, IsTimedOnceForEachProblem) {
  Convolution convolution;
  const auto run = [&](bool bias) {
    const int before = executions;
    EXPECT_TRUE(convolution.run(bias));
    return executions - before;
  };
  timing_allowed = false;
  EXPECT_EQ(run(false), 1) << "during a capture the first plan is taken";
  timing_allowed = true;
  for (const bool bias : {false, true}) {
    const int timed = run(bias);
    EXPECT_GT(timed, 1);
    EXPECT_EQ(timed % 4, 1) << "each plan four times, and the best one";
    EXPECT_EQ(run(bias), 1);
  }
}

TEST(Cudnn, LeavesEndingsThatItLacksToOthers) {
  for (bool* const lacks : {&refuses_graphs, &fails_endings}) {
    Convolution convolution;
    *lacks = true;
    EXPECT_FALSE(convolution.run(true));
    EXPECT_FALSE(convolution.run(true, false, true));
    EXPECT_FALSE(convolution.run(true, true, true));
    EXPECT_TRUE(convolution.run(false));
    *lacks = false;
    const int before = executions;
    EXPECT_FALSE(convolution.run(true));
    EXPECT_EQ(executions, before) << "and does not try again";
  }
}

TEST(Cudnn, TakesNoReluThatLosesNan) {
  Convolution convolution;
  loses_nan = true;
  EXPECT_FALSE(convolution.run(true, false, true));
  EXPECT_FALSE(convolution.run(true, true, true));
  EXPECT_TRUE(convolution.run(true));
  const int before = executions;
  EXPECT_FALSE(convolution.run(true, false, true));
  EXPECT_EQ(executions, before) << "and does not try again";
  loses_nan = false;
}

TEST(Cudnn, TriesNoEndingDuringACapture) {
  Convolution convolution;
  timing_allowed = false;
  const int before = executions;
  EXPECT_FALSE(convolution.run(true, false, true));
  EXPECT_EQ(executions, before);
  timing_allowed = true;
  EXPECT_TRUE(convolution.run(true, false, true));
  timing_allowed = false;
  EXPECT_TRUE(convolution.run(true, false, true)) << "what is known stays";
  timing_allowed = true;
}

TEST(Cudnn, ConvertsNoFloatsToSixteenBits) {
  down_converts = true;
  for (const bool tf32 : {false, true}) {
    allow_tf32(tf32);
    EXPECT_THROW(Convolution().run(false), DeviceError) << "no engine is left";
  }
  allow_tf32(false);
  check<bfloat16>({}, {2, 4, 5, 7}, {8, 4, 3, 3});
  down_converts = false;
}

TEST(Cudnn, SaysThatAConvolutionFailed) {
  Convolution convolution;
  fails = true;
  for (int repetition = 0; repetition < 2; ++repetition) EXPECT_THROW(convolution.run(false), DeviceError);
  fails = false;
  EXPECT_TRUE(convolution.run(false)) << "its plans are still there";
}

}  // namespace
}  // namespace taut::cuda
