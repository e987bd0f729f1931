#include "conv_plan.hpp"

#include <algorithm>

namespace taut::cuda {

namespace {

constexpr float one = 1, zero = 0;

cudnnDataType_t type_of(const ConvProblem& problem) {
  return problem.half ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/// A tensor [n, c, h, w] with its channels last. A virtual one is passed from operation to operation only.
Descriptor tensor(std::int64_t name, const Shape& shape, cudnnDataType_t type, bool is_virtual = false) {
  const std::int64_t c = shape[1], h = shape[2], w = shape[3];
  Descriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {type})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, {shape[0], c, h, w})
      .set(CUDNN_ATTR_TENSOR_STRIDES, {h * w * c, 1, w * c, c})
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {name})
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16});
  if (is_virtual) result.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, {true});
  return std::move(result.finalize());
}

Descriptor convolution(const ConvGeometry& g) {
  Descriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  result.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT})
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, {CUDNN_CROSS_CORRELATION})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {g.padding.h, g.padding.w})
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {g.padding.h, g.padding.w})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {g.dilation.h, g.dilation.w})
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {g.stride.h, g.stride.w});
  return std::move(result.finalize());
}

/// The names of what the operations of a kind of convolution are given.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  Descriptor::Attribute x, w, y, convolution, alpha, beta;
};

OperationNames names_of(ConvKind kind) {
  switch (kind) {
    case ConvKind::forward:
      break;
    case ConvKind::data_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvKind::weight_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

Descriptor convolve(const ConvProblem& problem, const Descriptor& y) {
  const ConvGeometry& g = problem.geometry;
  const OperationNames names = names_of(problem.kind);
  Descriptor result(names.operation);
  result.set(names.x, tensor(operand_x, g.x(), type_of(problem)))
      .set(names.w, tensor(operand_w, g.kernels(), type_of(problem)))
      .set(names.y, y)
      .set(names.convolution, convolution(g))
      .set(names.alpha, CUDNN_TYPE_FLOAT, {one})
      .set(names.beta, CUDNN_TYPE_FLOAT, {zero});
  return std::move(result.finalize());
}

/// y = mode(x), or mode(x, operand) where there is one. ReLU of NaN is NaN, as everywhere in Taut.
Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* operand,
                     const Descriptor& y) {
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, {mode})
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
  if (mode == CUDNN_POINTWISE_RELU_FWD)
    function.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, {CUDNN_PROPAGATE_NAN});
  function.finalize();
  Descriptor result(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  result.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (operand != nullptr) result.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *operand);
  return std::move(result.finalize());
}

/// The problem as a graph: a chain of operations from the convolution to the last part of its ending. The
/// residual comes before the bias, the order in which cuDNN's own kernels add them.
Descriptor graph_of(const ConvProblem& problem) {
  const Shape shape = problem.geometry.y();
  int following = problem.bias + problem.residual + problem.relu;
  std::int64_t name = operand_residual;
  const auto next = [&] {
    return following-- > 0 ? tensor(++name, shape, CUDNN_DATA_FLOAT, true)
                           : tensor(operand_y, shape, type_of(problem));
  };
  Descriptor last = next();
  std::vector<Descriptor> operations;
  operations.push_back(convolve(problem, last));
  const auto follow = [&](cudnnPointwiseMode_t mode, const Descriptor* operand) {
    Descriptor result = next();
    operations.push_back(pointwise(mode, last, operand, result));
    last = std::move(result);
  };
  const auto add = [&](ConvOperand addend, const Shape& its_shape) {
    const Descriptor operand = tensor(addend, its_shape, type_of(problem));
    follow(CUDNN_POINTWISE_ADD, &operand);
  };
  if (problem.residual) add(operand_residual, shape);
  if (problem.bias) add(operand_bias, {1, problem.geometry.out, 1, 1});
  if (problem.relu) follow(CUDNN_POINTWISE_RELU_FWD, nullptr);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), raw.size());
  return std::move(graph.finalize());
}

/// What cuDNN says of an engine's arithmetic.
std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& config) {
  const Descriptor engine = config.part(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  std::int64_t count = 0;
  check_cudnn(
      "cudnnBackendGetAttribute",
      cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()));
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

/// Whether an engine's results are as they must be. Winograd's large tiles lose too many digits, and floats
/// that are converted to a narrower type than TF32 may overflow.
bool is_acceptable(const ConvProblem& problem, const Descriptor& config) {
  const auto notes = notes_of(config);
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 ||
           (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS && !problem.half) ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && !problem.half && !problem.tf32);
  });
}

/// The engines that cuDNN proposes for a graph, the best first.
std::vector<Descriptor> proposals(const Descriptor& graph, const Descriptor& device,
                                  cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {mode})
      .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  return heuristics.parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

ConvProblem::Key ConvProblem::key() const {
  const ConvGeometry& g = geometry;
  return {static_cast<std::int64_t>(kind),
          g.n,
          g.c,
          g.h,
          g.w,
          g.out,
          g.oh,
          g.ow,
          g.kh,
          g.kw,
          g.groups,
          g.stride.h,
          g.stride.w,
          g.padding.h,
          g.padding.w,
          g.dilation.h,
          g.dilation.w,
          half,
          bias,
          residual,
          relu,
          tf32};
}

Descriptor describe_device(std::string_view json) {
  Descriptor result(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  result.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, json.data(), json.size());
  return std::move(result.finalize());
}

std::vector<ConvPlan> plan_convolution(const ConvProblem& problem, const Descriptor& device,
                                       std::size_t most) {
  std::vector<ConvPlan> plans;
  const Descriptor graph = graph_of(problem);
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : proposals(graph, device, mode)) {
      if (plans.size() == most) return plans;
      if (!is_acceptable(problem, config)) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
          .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
      if (plan.try_finalize() != CUDNN_STATUS_SUCCESS)
        continue;  // an engine may refuse what it was proposed for
      const auto workspace = plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      plans.push_back({std::move(config), std::move(plan), workspace});
    }
    if (!plans.empty()) break;
  }
  return plans;
}

}  // namespace taut::cuda
