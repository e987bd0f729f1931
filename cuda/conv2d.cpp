// Convolutions by cuDNN. A problem is planned when it first occurs; of the plans that cuDNN proposes, the
// first few are run and the fastest is kept, unless the stream is being captured, when the first is taken.
// One with an ending is only taken once it has been seen to run and its ReLU to keep NaN, since cuDNN's
// attribute for that is deprecated; during a capture nothing can be tried. What is not taken is left to the
// caller. Plans and the handle are one device's and are used under its lock, since cuDNN does not say which
// of its engines may run in two threads at once: what is serialised is only the putting of work into streams.

#include "taut/cuda/conv2d_launch.hpp"

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "conv_plan.hpp"
#include "nan_trial.hpp"
#include "taut/core/bfloat16.hpp"
#include "taut/cuda/buffer.hpp"
#include "taut/cuda/precision.hpp"
#include "timing.hpp"

namespace taut::cuda {

namespace {

/// How many plans are timed.
constexpr std::size_t most_candidates = 6;

/// Where the operands of a problem are.
struct ConvPointers {
  const void *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr, *residual = nullptr;
};

void run(cudnnHandle_t handle, const ConvPlan& plan, const ConvPointers& at, Stream stream) {
  const Buffer workspace =
      plan.workspace > 0 ? Buffer::allocate(static_cast<std::size_t>(plan.workspace)) : Buffer();
  std::int64_t names[] = {operand_x, operand_w, operand_y, 0, 0};
  const void* pointers[] = {at.x, at.w, at.y, nullptr, nullptr};
  std::size_t count = 3;
  const auto add = [&](ConvOperand name, const void* pointer) {
    if (pointer != nullptr) names[count] = name, pointers[count++] = pointer;
  };
  add(operand_bias, at.bias);
  add(operand_residual, at.residual);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, names, count)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers, count)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {workspace.data(stream)})
      .finalize();
  check_cudnn("cudnnBackendExecute", cudnnBackendExecute(handle, plan.plan.get(), pack.get()));
}

/// What one device knows of convolutions.
class ConvEngine {
 public:
  explicit ConvEngine(int device) : device_(describe_device(device)) {
    check_cudnn("cudnnCreate", cudnnCreate(&handle_));
  }

  /// Computes a problem; false, with the result undefined, if there is no plan for it.
  bool compute(const ConvProblem& problem, const ConvPointers& at, Stream stream) {
    const std::lock_guard lock(mutex_);
    check_cudnn("cudnnSetStream", cudnnSetStream(handle_, reinterpret_cast<cudaStream_t>(stream)));
    const auto key = problem.key();
    auto known = plans_.find(key);
    if (known == plans_.end()) {
      if (problem.has_ending() && !can_time(stream)) return false;  // it could not be tried
      known = plans_.emplace(key, find_plans(problem, at, stream)).first;
    }
    auto& plans = known->second;
    if (plans.empty()) return false;
    if (plans.size() > 1 && can_time(stream)) choose(plans, at, stream);
    run(handle_, plans.front(), at, stream);
    return true;
  }

 private:
  using Plans = std::vector<ConvPlan>;

  /// The plans for a problem; if it has an ending, the fastest of those that run and keep NaN.
  Plans find_plans(const ConvProblem& problem, const ConvPointers& at, Stream stream) {
    if (!problem.has_ending()) return plan_convolution(problem, device_, most_candidates);
    try {
      auto plans = plan_convolution(problem, device_, most_candidates);
      if (problem.relu) drop_what_loses_nan(plans, problem, at, stream);
      if (!plans.empty()) choose(plans, at, stream);
      return plans;
    } catch (const DeviceError&) {
      return {};  // cuDNN has none with this ending
    }
  }

  void drop_what_loses_nan(Plans& plans, const ConvProblem& problem, const ConvPointers& at, Stream stream) {
    cuda::drop_what_loses_nan(plans, {at.y, problem.half, problem.geometry.out}, stream,
                              [&](const ConvPlan& plan, const void* bias) {
                                run(handle_, plan, {at.x, at.w, at.y, bias, at.residual}, stream);
                              });
  }

  /// Keeps the fastest plan alone. Throws if none of them runs.
  void choose(Plans& plans, const ConvPointers& at, Stream stream) {
    keep_fastest(plans, stream, [&](const ConvPlan& plan) { run(handle_, plan, at, stream); });
  }

  std::mutex mutex_;
  Descriptor device_;
  cudnnHandle_t handle_ = nullptr;
  std::map<ConvProblem::Key, Plans> plans_;  ///< of each problem one, once it has been chosen
};

/// The engine of the current device; throws `DeviceError` if there is none. Engines are never destroyed:
/// buffers and threads may outlive the program's globals.
ConvEngine& engine() {
  static std::mutex mutex;
  static auto& engines = *new std::map<int, std::unique_ptr<ConvEngine>>;
  const int device = current_device();
  const std::lock_guard lock(mutex);
  auto& engine = engines[device];
  if (!engine) engine = std::make_unique<ConvEngine>(device);
  return *engine;
}

template <class E> ConvProblem problem_of(ConvKind kind, const ConvGeometry& geometry) {
  constexpr bool half = std::is_same_v<E, bfloat16>;
  return {.kind = kind, .geometry = geometry, .half = half, .tf32 = !half && tf32_allowed()};
}

void compute(const ConvProblem& problem, const ConvPointers& at, Stream stream) {
  if (!engine().compute(problem, at, stream))
    throw DeviceError("plan_convolution", 0,
                      "conv2d: cuDNN has no way to convolve " + to_string(problem.geometry.x()) + " with " +
                          to_string(problem.geometry.kernels()) + " on this device; use the CPU");
}

}  // namespace

template <class E>
bool launch_conv2d(const ConvGeometry& geometry, const E* x, const E* kernels, const ConvEnding<E>& ending,
                   E* y, Stream stream) {
  ConvProblem problem = problem_of<E>(ConvKind::forward, geometry);
  problem.bias = ending.bias != nullptr;
  problem.residual = ending.residual != nullptr;
  problem.relu = ending.relu;
  const ConvPointers at{x, kernels, y, ending.bias, ending.residual};
  if (!ending.empty()) return engine().compute(problem, at, stream);
  compute(problem, at, stream);
  return true;
}

template <class E>
void launch_conv2d_data_gradient(const ConvGeometry& geometry, const E* dy, const E* kernels, E* dx,
                                 Stream stream) {
  compute(problem_of<E>(ConvKind::data_gradient, geometry), {dx, kernels, dy}, stream);
}

template <class E>
void launch_conv2d_weight_gradient(const ConvGeometry& geometry, const E* dy, const E* x, E* dw,
                                   Stream stream) {
  compute(problem_of<E>(ConvKind::weight_gradient, geometry), {x, dw, dy}, stream);
}

template bool launch_conv2d(const ConvGeometry&, const float*, const float*, const ConvEnding<float>&, float*,
                            Stream);
template bool launch_conv2d(const ConvGeometry&, const bfloat16*, const bfloat16*,
                            const ConvEnding<bfloat16>&, bfloat16*, Stream);
template void launch_conv2d_data_gradient(const ConvGeometry&, const float*, const float*, float*, Stream);
template void launch_conv2d_data_gradient(const ConvGeometry&, const bfloat16*, const bfloat16*, bfloat16*,
                                          Stream);
template void launch_conv2d_weight_gradient(const ConvGeometry&, const float*, const float*, float*, Stream);
template void launch_conv2d_weight_gradient(const ConvGeometry&, const bfloat16*, const bfloat16*, bfloat16*,
                                            Stream);

}  // namespace taut::cuda
