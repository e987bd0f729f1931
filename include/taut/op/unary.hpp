#pragma once
// Elementwise functions of one tensor. Each is its scalar function; where the derivative is cheaper by the
// result than by the argument, a second line says so.

#include <numbers>
#include <string_view>

#include "partial.hpp"

namespace taut {

namespace op {

/// eˣ
struct Exp : Elementwise {
  static constexpr std::string_view name = "exp";
  template <class S> constexpr S operator()(S x) const {
    using std::exp;
    return exp(x);
  }
  template <class S> constexpr S gradient_from_output(S g, S y) const { return g * y; }
};

/// ln x
struct Log : Elementwise {
  static constexpr std::string_view name = "log";
  template <class S> constexpr S operator()(S x) const {
    using std::log;
    return log(x);
  }
};

/// √x
struct Sqrt : Elementwise {
  static constexpr std::string_view name = "sqrt";
  template <class S> constexpr S operator()(S x) const {
    using std::sqrt;
    return sqrt(x);
  }
  template <class S> constexpr S gradient_from_output(S g, S y) const { return g / (S(2) * y); }
};

/// x²
struct Square : Elementwise {
  static constexpr std::string_view name = "square";
  template <class S> constexpr S operator()(S x) const { return x * x; }
};

/// |x|, with derivative 0 at 0
struct Abs : Elementwise {
  static constexpr std::string_view name = "abs";
  template <class S> constexpr S operator()(S x) const {
    using std::abs;
    return abs(x);
  }
};

/// sin x, in radians
struct Sin : Elementwise {
  static constexpr std::string_view name = "sin";
  template <class S> constexpr S operator()(S x) const {
    using std::sin;
    return sin(x);
  }
};

/// cos x, in radians
struct Cos : Elementwise {
  static constexpr std::string_view name = "cos";
  template <class S> constexpr S operator()(S x) const {
    using std::cos;
    return cos(x);
  }
};

/// erf x = 2/√π ∫₀ˣ exp(-t²) dt
struct Erf : Elementwise {
  static constexpr std::string_view name = "erf";
  template <class S> constexpr S operator()(S x) const {
    using std::erf;
    return erf(x);
  }
};

/// tanh x
struct Tanh : Elementwise {
  static constexpr std::string_view name = "tanh";
  template <class S> constexpr S operator()(S x) const {
    using std::tanh;
    return tanh(x);
  }
  template <class S> constexpr S gradient_from_output(S g, S y) const { return g * (S(1) - y * y); }
};

/// 1 / (1 + e⁻ˣ)
struct Sigmoid : Elementwise {
  static constexpr std::string_view name = "sigmoid";
  template <class S> constexpr S operator()(S x) const {
    using std::exp;
    return S(1) / (S(1) + exp(-x));
  }
  template <class S> constexpr S gradient_from_output(S g, S y) const { return g * y * (S(1) - y); }
};

/// max(x, 0), with derivative 0 at 0; NaN propagates
struct Relu : Elementwise {
  static constexpr std::string_view name = "relu";
  template <class S> constexpr S operator()(S x) const { return select(x <= S(0), S(0), x); }
  template <class S> constexpr S gradient_from_output(S g, S y) const { return select(y <= S(0), S(0), g); }
};

/// relu(a + b): one pass where the sum is wanted for nothing else.
struct AddRelu : Elementwise {
  static constexpr std::string_view name = "add_relu";
  template <class S> constexpr S operator()(S a, S b) const { return Relu{}(a + b); }
};

/// x Φ(x) with the normal distribution's Φ(x) = (1 + erf(x/√2)) / 2: PyTorch's default, exact form
/// (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016)
struct Gelu : Elementwise {
  static constexpr std::string_view name = "gelu";
  template <class S> constexpr S operator()(S x) const {
    using std::erf;
    return S(0.5) * x * (S(1) + erf(x * S(1 / std::numbers::sqrt2)));
  }
};

/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2: the approximation of `Gelu` by its authors, at most 5e-4 off
struct GeluTanh : Elementwise {
  static constexpr std::string_view name = "gelu_tanh";
  template <class S> constexpr S operator()(S x) const {
    using std::tanh;
    const S inner = S(std::numbers::sqrt2 * std::numbers::inv_sqrtpi) * (x + S(0.044715) * x * x * x);
    return S(0.5) * x * (S(1) + tanh(inner));
  }
};

}  // namespace op

/// eˣ, elementwise.
template <AnyTensor X> constexpr auto exp(X&& x) { return eval(op::Exp{}, std::forward<X>(x)); }

/// The natural logarithm, elementwise: -inf at 0, NaN below.
template <AnyTensor X> constexpr auto log(X&& x) { return eval(op::Log{}, std::forward<X>(x)); }

/// The square root, elementwise: NaN below 0.
template <AnyTensor X> constexpr auto sqrt(X&& x) { return eval(op::Sqrt{}, std::forward<X>(x)); }

/// x², elementwise.
template <AnyTensor X> constexpr auto square(X&& x) { return eval(op::Square{}, std::forward<X>(x)); }

/// |x|, elementwise; the derivative at 0 is 0.
template <AnyTensor X> constexpr auto abs(X&& x) { return eval(op::Abs{}, std::forward<X>(x)); }

/// The sine of x in radians, elementwise.
template <AnyTensor X> constexpr auto sin(X&& x) { return eval(op::Sin{}, std::forward<X>(x)); }

/// The cosine of x in radians, elementwise.
template <AnyTensor X> constexpr auto cos(X&& x) { return eval(op::Cos{}, std::forward<X>(x)); }

/// The error function, elementwise.
template <AnyTensor X> constexpr auto erf(X&& x) { return eval(op::Erf{}, std::forward<X>(x)); }

/// The hyperbolic tangent, elementwise.
template <AnyTensor X> constexpr auto tanh(X&& x) { return eval(op::Tanh{}, std::forward<X>(x)); }

/// 1 / (1 + e⁻ˣ), elementwise.
template <AnyTensor X> constexpr auto sigmoid(X&& x) { return eval(op::Sigmoid{}, std::forward<X>(x)); }

/// max(x, 0), elementwise; the derivative at 0 is 0.
template <AnyTensor X> constexpr auto relu(X&& x) { return eval(op::Relu{}, std::forward<X>(x)); }

/// x Φ(x) = x (1 + erf(x/√2)) / 2, elementwise: PyTorch's `gelu` with `approximate='none'`.
template <AnyTensor X> constexpr auto gelu(X&& x) { return eval(op::Gelu{}, std::forward<X>(x)); }

/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, elementwise: PyTorch's `gelu` with `approximate='tanh'`.
template <AnyTensor X> constexpr auto gelu_tanh(X&& x) { return eval(op::GeluTanh{}, std::forward<X>(x)); }

}  // namespace taut
