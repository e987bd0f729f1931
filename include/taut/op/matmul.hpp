#pragma once
// Matrix products.

#include <algorithm>
#include <array>
#include <string_view>

#include "reduce.hpp"
#include "unary.hpp"

namespace taut {

namespace detail {

/// [..., n] as the matrix [rows, n].
template <AnyTensor T> T as_rows(const T& x) {
  if (x.shape().rank() == 2) return x;
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) rows *= x.shape()[i];
  return reshape(x, {rows, x.shape()[-1]});
}

/// "a_b"
template <const std::string_view& a, const std::string_view& b>
inline constexpr auto joined = [] {
  std::array<char, a.size() + 1 + b.size()> text{};
  *std::copy(a.begin(), a.end(), text.begin()) = '_';
  std::copy(b.begin(), b.end(), text.end() - b.size());
  return text;
}();

}  // namespace detail

namespace op {

/// Matrix product of [.., m, k] and [.., k, n]: [.., m, n]. Leading batch dimensions broadcast.
struct Matmul {
  static constexpr std::string_view name = "matmul";
  bool transpose_a = false;  ///< `a` is given as [.., k, m]
  bool transpose_b = false;  ///< `b` is given as [.., n, k]

  constexpr Shape shape(const Shape& a, const Shape& b) const {
    require(a.rank() >= 2 && b.rank() >= 2, "matmul: both operands need two dimensions or more", a, b);
    require(a[transpose_a ? -2 : -1] == b[transpose_b ? -1 : -2], "matmul: the inner dimensions differ", a,
            b);
    require(batches_fit(a, b), "matmul: the batch dimensions do not broadcast", a, b);
    Shape batch = broadcast_shapes(name, batch_of(a), batch_of(b));
    batch.push_back(a[transpose_a ? -1 : -2]);
    batch.push_back(b[transpose_b ? -2 : -1]);
    return batch;
  }
  constexpr std::int64_t flops(const Shape& a, const Shape& b) const {
    return 2 * shape(a, b).size() * a[transpose_a ? -2 : -1];
  }

  static constexpr bool batches_fit(const Shape& a, const Shape& b) {
    for (int axis = -3; axis >= -a.rank() && axis >= -b.rank(); --axis)
      if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) return false;
    return true;
  }
  static constexpr Shape batch_of(const Shape& matrices) {
    Shape batch;
    for (int i = 0; i + 2 < matrices.rank(); ++i) batch.push_back(matrices[i]);
    return batch;
  }

  // C = A B: dA = dC Bᵀ and dB = Aᵀ dC, summed over the batch dimensions along which the operand was
  // repeated.
  template <AnyTensor T> auto pullback(Needs<2> needs, const T&, const T& a, const T& b) const {
    return [needs, ta = transpose_a, tb = transpose_b, shape_a = a.shape(), shape_b = b.shape(),
            a = needs[1] ? a : T{}, b = needs[0] ? b : T{}](const T& g) {
      std::array<T, 2> gradients;
      if (needs[0])
        gradients[0] = sum_to(ta ? eval(Matmul{tb, true}, b, g) : eval(Matmul{false, !tb}, g, b), shape_a);
      if (needs[1]) {
        // A matrix shared by the whole batch: one product over all rows instead of a sum of products.
        const bool flat = shape_b.rank() == 2 && shape_a.rank() > 2 && !ta;
        const T rows_a = flat ? detail::as_rows(a) : a, rows_g = flat ? detail::as_rows(g) : g;
        gradients[1] = sum_to(
            tb ? eval(Matmul{true, ta}, rows_g, rows_a) : eval(Matmul{!ta, false}, rows_a, rows_g), shape_b);
      }
      return gradients;
    };
  }
};

/// x Wᵀ + b: x [.., in], W [out, in], b [out], as PyTorch's `linear`.
struct Linear {
  static constexpr std::string_view name = "linear";

  constexpr Shape shape(const Shape& x, const Shape& weight, const Shape& bias) const {
    require(x.rank() >= 1 && weight.rank() == 2 && x[-1] == weight[1],
            "linear: the last dimension of the input must be the second of the weight, [out, in]", x, weight);
    require(bias == Shape{weight[0]}, "linear: the bias must have the first dimension of the weight, [out]",
            bias, weight);
    Shape to = x;
    to[-1] = weight[0];
    return to;
  }
  constexpr std::int64_t flops(const Shape& x, const Shape& weight, const Shape& bias) const {
    return (2 * weight[1] + 1) * shape(x, weight, bias).size();
  }
  template <AnyTensor T>
  auto pullback(Needs<3> needs, const T&, const T& x, const T& weight, const T& bias) const {
    return [needs, x = needs[1] ? x : T{}, weight = needs[0] ? weight : T{}, shape_b = bias.shape(),
            shape_x = x.shape()](const T& g) {
      std::array<T, 3> gradients;
      const T rows = detail::as_rows(g);
      if (needs[0]) gradients[0] = reshape(eval(Matmul{}, rows, weight), shape_x);
      if (needs[1]) gradients[1] = eval(Matmul{.transpose_a = true}, rows, detail::as_rows(x));
      if (needs[2]) gradients[2] = sum_to(rows, shape_b);
      return gradients;
    };
  }
  template <AnyTensor T> T decompose(const T& x, const T& weight, const T& bias) const {
    return reshape(eval(Matmul{.transpose_b = true}, detail::as_rows(x), weight) + bias,
                   shape(x.shape(), weight.shape(), bias.shape()));
  }
};

/// f(x Wᵀ + b) with an elementwise function f of one tensor. Where f has its derivative by its result, that
/// is all that is saved of it.
template <ElementwiseOp F> struct LinearThen {
  F f{};
  static constexpr bool ends_with_activation = true;
  static constexpr auto full_name = detail::joined<Linear::name, F::name>;
  static constexpr std::string_view name{full_name.data(), full_name.size()};

  constexpr Shape shape(const Shape& x, const Shape& weight, const Shape& bias) const {
    return Linear{}.shape(x, weight, bias);
  }
  constexpr std::int64_t flops(const Shape& x, const Shape& weight, const Shape& bias) const {
    return Linear{}.flops(x, weight, bias) + shape(x, weight, bias).size();
  }
  template <AnyTensor T>
  requires HasOutputGradient<F>
  auto pullback(Needs<3> needs, const T& y, const T& x, const T& weight, const T& bias) const {
    return [f = f, y, rule = Linear{}.pullback(needs, y, x, weight, bias)](const T& g) {
      return rule(eval(PartialFromOutput<F>{{}, f}, g, y));
    };
  }
  template <AnyTensor T> T decompose(const T& x, const T& weight, const T& bias) const {
    return eval(f, eval(Linear{}, x, weight, bias));
  }
};

}  // namespace op

/// The matrix product of [.., m, k] and [.., k, n]: [.., m, n]; leading batch dimensions broadcast. An
/// operand stored transposed is named so: `matmul(x, w, {.transpose_b = true})`.
template <AnyTensor A, AnyTensor B> constexpr auto matmul(const A& a, const B& b, op::Matmul options = {}) {
  return eval(options, a, b);
}

/// x Wᵀ + b, with x [.., in], W [out, in] and b [out]: [.., out]. Throws `ShapeError` if they do not fit.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto linear(const X& x, const W& weight, const B& bias) {
  return eval(op::Linear{}, x, weight, bias);
}

/// relu(x Wᵀ + b), in one pass where the backend can.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto linear_relu(const X& x, const W& weight, const B& bias) {
  return eval(op::LinearThen<op::Relu>{}, x, weight, bias);
}

/// gelu_tanh(x Wᵀ + b), likewise.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto linear_gelu_tanh(const X& x, const W& weight, const B& bias) {
  return eval(op::LinearThen<op::GeluTanh>{}, x, weight, bias);
}

}  // namespace taut
