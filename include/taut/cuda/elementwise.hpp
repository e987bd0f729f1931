#pragma once
// Elementwise operators on the device: one launch each, with broadcasting (map.cuh has the kernels). The
// result has the operands' common layout; an operand of the result's shape in another one is converted first,
// smaller ones are read as they lie.

#include <list>

#include "elementwise_launch.hpp"
#include "movement.hpp"
#include "tensor.hpp"

namespace taut {

namespace cuda {

/// Element types that elementwise operators have kernels for.
template <class E>
concept Computed = std::same_as<E, float> || std::same_as<E, bfloat16>;

/// An elementwise operator with its type erased: its name, for errors, and its launcher.
template <class E> struct ErasedOperator {
  std::string_view name;
  const void* op;
  void (*launch)(const void* op, const MapPlan& plan, E* to, const E* const* from, Stream stream);

  template <class Op, int N> static ErasedOperator of(const Op& op) {
    static_assert(N <= max_operands, "elementwise operators have at most 8 operands");
    return {Op::name, &op,
            [](const void* self, const MapPlan& plan, E* to, const E* const* from, Stream stream) {
              launch_map<Op, E, N>(*static_cast<const Op*>(self), plan, to, from, stream);
            }};
  }
};

/// An operand of an elementwise operator; `owner` is set if it was passed as an rvalue.
template <class E> struct ElementwiseOperand {
  const BasicCudaTensor<E>* tensor;
  BasicCudaTensor<E>* owner;
};

template <class E, class X> ElementwiseOperand<E> elementwise_operand(X&& x) {
  if constexpr (std::is_lvalue_reference_v<X> || std::is_const_v<std::remove_reference_t<X>>)
    return {&x, nullptr};
  else
    return {&x, &x};
}

/// The layout of an elementwise operator's result: the one that is not dense, if an operand of the result's
/// shape has it.
template <class E>
Layout result_layout(const Shape& shape, const ElementwiseOperand<E>* operands, int count) {
  Layout layout = Layout::dense;
  for (int k = 0; k < count; ++k)
    if (operands[k].tensor->shape() == shape) layout = common_layout(layout, operands[k].tensor->layout());
  return layout;
}

/// How tensors lie over one of a shape that they broadcast to.
template <class E>
MapPlan broadcast_plan(const Shape& shape, Layout layout, const BasicCudaTensor<E>* const* operands,
                       int count) {
  MapPlan plan;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = memory_axis(shape.rank(), layout, i);
    std::int64_t strides[max_operands];
    for (int k = 0; k < count; ++k) {
      const Shape& own = operands[k]->shape();
      const int own_axis = axis - (shape.rank() - own.rank());
      const bool repeated = own_axis < 0 || own[own_axis] == 1;
      strides[k] = repeated ? 0 : Strides(own, operands[k]->layout())[own_axis];
    }
    plan.add_axis(shape[axis], strides, count);
  }
  return plan;
}

/// The same for tensors that lie like the result.
inline MapPlan same_plan(std::int64_t size, int count) {
  MapPlan plan;
  plan.extents[0] = size;
  std::fill_n(plan.strides[0], count, 1);
  return plan;
}

/// The result of an elementwise operator. It takes over the memory of an operand that was passed as an
/// rvalue, lies as the result does and shares its memory with nobody.
template <class E>
BasicCudaTensor<E> elementwise(const ErasedOperator<E>& op, const Shape& shape,
                               const ElementwiseOperand<E>* operands, int count) {
  const Layout layout = result_layout(shape, operands, count);
  BasicCudaTensor<E>* reusable = nullptr;
  for (int k = 0; k < count && !reusable; ++k) {
    const auto& [tensor, owner] = operands[k];
    if (owner && owner->unique() && owner->layout() == layout && owner->shape() == shape) reusable = owner;
  }
  const BasicCudaTensor<E>* placed[max_operands];
  std::list<BasicCudaTensor<E>> converted;  // whose addresses stay
  bool same = true;
  for (int k = 0; k < count; ++k) {
    placed[k] = operands[k].tensor;
    if (!(placed[k]->shape() == shape))
      same = false;
    else if (placed[k]->layout() != layout)
      placed[k] = &converted.emplace_back(placed[k]->in_layout(layout));
  }
  const MapPlan plan = same ? same_plan(shape.size(), count) : broadcast_plan(shape, layout, placed, count);
  const E* from[max_operands];
  for (int k = 0; k < count; ++k) from[k] = placed[k]->data();
  auto result = reusable ? std::move(*reusable) : BasicCudaTensor<E>::uninitialized(shape, layout);
  op.launch(op.op, plan, result.mutable_data(), from, current_stream());
  return result;
}

}  // namespace cuda

/// The kernel of every elementwise operator. A derivative that is known to vanish, or to be the incoming
/// gradient, needs none.
template <ElementwiseOp Op, class X, class... Xs>
requires cuda::SameTensors<X, Xs...> && cuda::Computed<typename std::remove_cvref_t<X>::Element>
auto eval(const Op& op, X&& x, Xs&&... xs) -> std::remove_cvref_t<X> {
  using T = std::remove_cvref_t<X>;
  using E = typename T::Element;
  constexpr int n = 1 + sizeof...(Xs);
  const Shape shape = infer_shape(op, Shape(x.shape()), Shape(xs.shape())...);
  constexpr auto trivial = cuda::triviality<Op, n>();
  if constexpr (trivial == cuda::Triviality::zero) {
    return T::zeros(shape);
  } else if constexpr (trivial == cuda::Triviality::first) {
    return eval(op::BroadcastTo{shape}, std::forward<X>(x));
  } else {
    static_assert(cuda::derivative_order<Op> <= cuda::most_derivatives,
                  "CudaTensor: elementwise operators have no kernels for third derivatives");
    const cuda::ElementwiseOperand<E> operands[] = {cuda::elementwise_operand<E>(std::forward<X>(x)),
                                                    cuda::elementwise_operand<E>(std::forward<Xs>(xs))...};
    return cuda::elementwise<E>(cuda::ErasedOperator<E>::template of<Op, n>(op), shape, operands, n);
  }
}

}  // namespace taut
