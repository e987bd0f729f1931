#pragma once
// The launcher of matrix products, as both the tensors' side and the library's side see it.

#include <compare>
#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// What may be done to the elements of a product in the same pass: `op::Relu` or `op::GeluTanh`.
enum class Activation { none, relu, gelu_tanh };

/// One product, or a batch of them: C = f(op(A) op(B)), where op transposes if asked to. A is [m, k] in
/// memory, or [k, m] with `transpose_a`; B is [k, n], or [n, k] with `transpose_b`; C is [m, n]. All are
/// row-major.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  /// Elements between the items of a batch; 0 where the whole batch shares the operand.
  std::int64_t stride_a = 0, stride_b = 0;
  Activation activation = Activation::none;  ///< f

  friend auto operator<=>(const Product&, const Product&) = default;
};

/// C = f(op(A) op(B) + bias) for each item of the batch, none of whose extents is 0. `bias`, of n elements,
/// is added to every row; it may be null where there is no f. Sums are floats. For E float or bfloat16.
/// Returns false, with C undefined, where the library has no way to do all of it in one pass, which without a
/// bias is a `DeviceError` instead.
template <class E>
bool launch_matmul(const Product& product, const E* a, const E* b, const E* bias, E* c, Stream stream);

}  // namespace taut::cuda
