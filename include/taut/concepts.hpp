#pragma once
// The interfaces of tensors, stated by the operators that they list.

#include <concepts>

#include "op/arithmetic.hpp"
#include "op/batch_norm.hpp"
#include "op/compare.hpp"
#include "op/conv2d.hpp"
#include "op/cross_entropy.hpp"
#include "op/dropout.hpp"
#include "op/matmul.hpp"
#include "op/max_pool2d.hpp"
#include "op/movement.hpp"
#include "op/reduce.hpp"
#include "op/resample2d.hpp"
#include "op/softmax.hpp"
#include "op/unary.hpp"

namespace taut {

/// `eval(op, xs…)` is defined for T and gives a T.
template <class T, class Op, class... Xs>
concept Evaluates = requires(const Op& op, const Xs&... xs) {
  { eval(op, xs...) } -> std::same_as<T>;
};

/// T has all these operators of one operand.
template <class T, class... Ops>
concept UnaryOperators = (Evaluates<T, Ops, T> && ...);

/// T has all these operators of two operands.
template <class T, class... Ops>
concept BinaryOperators = (Evaluates<T, Ops, T, T> && ...);

/// A value with a shape, made in the usual ways and, but for `ShapeTensor`, brought back to the host.
template <class T>
concept TensorValue = AnyTensor<T> && std::copyable<T> && std::default_initializable<T> &&
    requires(const T& x, const Shape& shape, typename T::Element e) {
  typename T::Index;
  { x.shape() } -> std::convertible_to<Shape>;
  { T::full(shape, e) } -> std::same_as<T>;
  { T::zeros(shape) } -> std::same_as<T>;
  { T::ones(shape) } -> std::same_as<T>;
};

/// Elementwise functions, reductions and movement: what most programs need.
template <class T>
concept Tensor =
    TensorValue<T> && UnaryOperators<T, op::Exp, op::Log, op::Sqrt, op::Square, op::Abs, op::Sin, op::Cos,
                                     op::Erf, op::Tanh, op::Sigmoid, op::Relu, op::Gelu, op::GeluTanh> &&
    BinaryOperators<T, op::Add, op::Sub, op::Mul, op::Div, op::Pow, op::Maximum, op::Minimum, op::Eq, op::Ne,
                    op::Lt, op::Le> && Evaluates<T, op::Where, T, T, T> &&
    UnaryOperators<T, op::Sum, op::Max, op::Min> && Evaluates<typename T::Index, op::Argmax, T> &&
    UnaryOperators<T, op::Reshape, op::Permute, op::BroadcastTo, op::SumTo, op::Slice, op::Dropout> &&
    BinaryOperators<T, op::Concat>;

/// A `Tensor` with matrix products, softmax and cross-entropy.
template <class T>
concept BlasTensor = Tensor<T> && BinaryOperators<T, op::Matmul> && Evaluates<T, op::Linear, T, T, T> &&
    UnaryOperators<T, op::Softmax, op::LogSoftmax> && Evaluates<T, op::CrossEntropy, T, typename T::Index>;

/// A `BlasTensor` with convolution, pooling, resampling and batch normalisation of images.
template <class T>
concept ImageTensor = BlasTensor<T> && BinaryOperators<T, op::Conv2d> && Evaluates<T, op::Conv2d, T, T, T> &&
    UnaryOperators<T, op::MaxPool2d, op::AvgPool2d, op::AdaptiveAvgPool2d, op::Upsample2d> &&
    Evaluates<Widened<T>, op::BatchStatistics, T> && Evaluates<T, op::BatchNorm, T, T, T, Widened<T>> &&
    Evaluates<T, op::BatchNormAddRelu, T, T, T, Widened<T>, T>;

/// A `BlasTensor` with what gradient rules are made of: required of the T in `Grad<T>`, never of `Grad<T>`
/// itself.
template <class T>
concept DifferentiableTensor = BlasTensor<T> && UnaryOperators<T, op::Unslice> &&
    Evaluates<T, op::Pick, T, typename T::Index> && Evaluates<T, op::Unpick, T, typename T::Index> &&
    Evaluates<T, op::CrossEntropyGradient, T, T, typename T::Index>;

/// An `ImageTensor` with what gradient rules are made of.
template <class T>
concept DifferentiableImageTensor = ImageTensor<T> && DifferentiableTensor<T> &&
    BinaryOperators<T, op::Conv2dDataGradient, op::Conv2dWeightGradient, op::MaxPool2dPick,
                    op::MaxPool2dGradient> &&
    UnaryOperators<T, op::ResampleGradient<op::AvgPool2d>, op::ResampleGradient<op::AdaptiveAvgPool2d>,
                   op::ResampleGradient<op::Upsample2d>> &&
    Evaluates<Widened<T>, op::BatchNormSums, T, T, T, T, Widened<T>> &&
    Evaluates<T, op::BatchNormGradient, T, T, T, T, Widened<T>, Widened<T>>;

}  // namespace taut
