#pragma once
// Plans of convolutions: which of cuDNN's engines compute one, and with how much working memory. Planning
// needs no device, only its description; running does (conv2d.cpp).

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cudnn_descriptor.hpp"
#include "taut/cuda/conv2d_launch.hpp"

namespace taut::cuda {

enum class ConvKind { forward, data_gradient, weight_gradient };

/// What is to be computed: a convolution or a gradient of it, and in which type of elements.
struct ConvProblem {
  ConvKind kind = ConvKind::forward;
  ConvGeometry geometry;
  bool half = false;      ///< bfloat16 instead of float; sums are floats
  bool bias = false;      ///< a bias for each output channel is added, forward
  bool residual = false;  ///< and a tensor of the result's shape
  bool relu = false;      ///< and negative sums become 0
  bool tf32 = false;      ///< floats may be rounded to TF32

  /// Whether anything follows the convolution in the same pass.
  bool has_ending() const { return bias || residual || relu; }

  /// All of it as a list of numbers, by which plans are found again.
  using Key = std::array<std::int64_t, 22>;
  Key key() const;
};

/// How the operands are named when a plan is run: the images, kernels and results of the convolution, or
/// their gradients; and what is added.
enum ConvOperand : std::int64_t { operand_x = 1, operand_w, operand_y, operand_bias, operand_residual };

/// One way to compute a problem.
struct ConvPlan {
  Descriptor config, plan;
  std::int64_t workspace = 0;  ///< bytes of working memory
};

/// A description of the device with the given number.
Descriptor describe_device(int device);

/// A description from a JSON text, as cuDNN writes it.
Descriptor describe_device(std::string_view json);

/// At most `most` plans for the device, the ones that cuDNN thinks are the fastest first. All of them give
/// the same result at each run, and compute with full precision unless TF32 is allowed. Empty if there is
/// none.
std::vector<ConvPlan> plan_convolution(const ConvProblem& problem, const Descriptor& device,
                                       std::size_t most);

}  // namespace taut::cuda
