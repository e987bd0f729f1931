#pragma once
// What follows a convolution in the same operator.

#include "../op/conv2d.hpp"
#include "elementwise.hpp"

namespace taut::cpu {

/// + residual, if there is one, then ReLU, if wanted.
template <class E> struct ConvEnding {
  const BasicCpuArray<E>* residual = nullptr;
  bool relu = false;

  /// The same as passes of their own, for algorithms that do not know of it.
  BasicCpuArray<E> operator()(BasicCpuArray<E> y) const {
    if (residual) return eval(op::AddRelu{}, std::move(y), *residual);
    return relu ? eval(op::Relu{}, std::move(y)) : y;
  }
};

/// The same with the bias, for algorithms that do it while they write the result: null pointers stand for
/// none.
struct ConvEpilogue {
  const float* bias = nullptr;
  const float* residual = nullptr;  ///< in the layout of the result
  bool relu = false;
};

}  // namespace taut::cpu
