#pragma once
// `ShapeTensor`: only the shapes of a program, in constant expressions too, and what it would cost.

#include <cstdint>

#include "../core/random.hpp"
#include "../op/operator.hpp"

namespace taut {

/// What running a program takes: floating-point operations (a multiply-add is two), and elements written.
struct Cost {
  std::int64_t flops = 0;
  std::int64_t elements_written = 0;
  constexpr bool operator==(const Cost&) const = default;
};

/// A tensor of which only the shape is known. A whole model run on it checks its shapes, at compile time in a
/// `static_assert`. With a `Cost` attached, every operator on it and its results adds to that.
class ShapeTensor {
 public:
  using tensor_tag = void;
  using Element = float;
  using Index = ShapeTensor;

  constexpr ShapeTensor() = default;
  constexpr explicit ShapeTensor(const Shape& shape, Cost* cost = nullptr) : shape_(shape), cost_(cost) {
    require_extents("shape_tensor", shape);
  }

  static constexpr ShapeTensor full(const Shape& shape, float) { return ShapeTensor(shape); }
  static constexpr ShapeTensor zeros(const Shape& shape) { return ShapeTensor(shape); }
  static constexpr ShapeTensor ones(const Shape& shape) { return ShapeTensor(shape); }
  static constexpr ShapeTensor uniform(const Shape& shape, float, float, Rng&) { return ShapeTensor(shape); }
  static constexpr ShapeTensor normal(const Shape& shape, float, float, Rng&) { return ShapeTensor(shape); }

  constexpr const Shape& shape() const { return shape_; }
  constexpr Cost* cost() const { return cost_; }

 private:
  Shape shape_;
  Cost* cost_ = nullptr;
};

/// The floating-point operations of an operator on operands of the given shapes: its own `flops` rule, one an
/// element of the result for elementwise operators, none for those that only move.
template <class Op, std::same_as<Shape>... Shapes>
constexpr std::int64_t count_flops(const Op& op, const Shapes&... shapes) {
  if constexpr (requires { op.flops(shapes...); })
    return op.flops(shapes...);
  else if constexpr (ElementwiseOp<Op>)
    return infer_shape(op, shapes...).size();
  else
    return 0;
}

/// The bytes that an operator has to move at least if nothing is cached: its own `bytes` rule, else each
/// operand read once and the result, of elements of the given size, written once. An operand that is given
/// twice counts twice.
template <class Op, std::same_as<DenseSize>... Operands>
constexpr std::int64_t count_bytes(const Op& op, std::int64_t result_element_size,
                                   const Operands&... operands) {
  const DenseSize result{infer_shape(op, operands.shape...), result_element_size};
  if constexpr (requires { op.bytes(result, operands...); })
    return op.bytes(result, operands...);
  else
    return (result.bytes() + ... + operands.bytes());
}

/// The meaning of every operator for `ShapeTensor`: its shape rule.
template <class Op, std::same_as<ShapeTensor>... Xs>
constexpr ShapeTensor eval(const Op& op, const ShapeTensor& x, const Xs&... xs) {
  Cost* cost = x.cost();
  ((cost = cost ? cost : xs.cost()), ...);
  const ShapeTensor result(infer_shape(op, x.shape(), xs.shape()...), cost);
  if (cost) {
    cost->flops += count_flops(op, x.shape(), xs.shape()...);
    cost->elements_written += result.shape().size();
  }
  return result;
}

/// The cost of a program on inputs of the given shapes: `cost(model, Shape{64, 784}).flops`. The program is
/// anything that can be called with a `ShapeTensor` for each shape.
template <class F, std::same_as<Shape>... Shapes>
constexpr Cost cost(const F& program, const Shapes&... inputs) {
  Cost total;
  (void)program(ShapeTensor(inputs, &total)...);
  return total;
}

}  // namespace taut
