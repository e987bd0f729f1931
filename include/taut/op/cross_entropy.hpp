#pragma once
// The cross-entropy of logits and integer labels, and the operators that its derivatives are made of.

#include <concepts>
#include <string_view>

#include "softmax.hpp"

namespace taut {

namespace op {

/// The element that a label names in each row: x [n, classes], labels [n]: [n].
struct Pick {
  static constexpr std::string_view name = "pick";

  constexpr Shape shape(const Shape& x, const Shape& labels) const {
    require(x.rank() == 2 && labels == Shape{x[0]}, "pick: takes [n, classes] and labels [n]", x, labels);
    return labels;
  }
  constexpr std::int64_t bytes(const DenseSize& result, const DenseSize&, const DenseSize& labels) const {
    return 2 * result.bytes() + labels.bytes();
  }
  template <AnyTensor T> auto pullback(Needs<2>, const T&, const T& x, const typename T::Index& labels) const;
};

/// Rows of zeros with x at the place that a label names: x [n], labels [n]: [n, classes]. The adjoint of
/// `Pick`.
struct Unpick {
  static constexpr std::string_view name = "unpick";
  std::int64_t classes = 0;

  constexpr Shape shape(const Shape& x, const Shape& labels) const {
    require(x.rank() == 1 && labels == x, "unpick: takes [n] and labels [n]", x, labels);
    return {x[0], classes};
  }
  template <AnyTensor T> auto pullback(Needs<2>, const T&, const T&, const typename T::Index& labels) const {
    return [labels](const T& g) { return std::array<T, 2>{eval(Pick{}, g, labels), T{}}; };
  }
};

template <AnyTensor T>
auto Pick::pullback(Needs<2>, const T&, const T& x, const typename T::Index& labels) const {
  return [labels, classes = x.shape()[1]](const T& g) {
    return std::array<T, 2>{eval(Unpick{classes}, g, labels), T{}};
  };
}

/// g (softmax(x) - onehot(labels)) / n: the gradient of `CrossEntropy` by its logits, for a scalar g.
struct CrossEntropyGradient {
  static constexpr std::string_view name = "cross_entropy_gradient";

  constexpr Shape shape(const Shape& g, const Shape& x, const Shape& labels) const {
    require(g.size() == 1, "cross_entropy_gradient: the incoming gradient must be a scalar", g, x);
    require(x.rank() == 2 && labels == Shape{x[0]},
            "cross_entropy_gradient: takes [n, classes] and labels [n]", x, labels);
    return x;
  }
  constexpr std::int64_t flops(const Shape&, const Shape& x, const Shape&) const { return 6 * x.size(); }

  // With s = softmax(x) and the incoming gradient v: d/dg = Σ v (s - onehot) / n, and d/dx is g/n times
  // softmax's own rule, s (v - Σ v s).
  template <AnyTensor T>
  auto pullback(Needs<3> needs, const T&, const T& g, const T& x, const typename T::Index& labels) const {
    return [needs, g, x, labels](const T& v) {
      std::array<T, 3> gradients;
      const double scale = 1.0 / static_cast<double>(x.shape()[0]);
      const T s = softmax(x), vs = sum(v * s, {1}, true);
      if (needs[0]) gradients[0] = reshape((sum(vs) - sum(eval(Pick{}, v, labels))) * scale, g.shape());
      if (needs[1]) gradients[1] = s * (v - vs) * (reshape(g, {1, 1}) * scale);
      return gradients;
    };
  }
  template <AnyTensor T> T decompose(const T& g, const T& x, const typename T::Index& labels) const {
    const Shape from = x.shape();
    const T onehot = eval(Unpick{from[1]}, T::ones({from[0]}), labels);
    return (softmax(x) - onehot) * (reshape(g, {1, 1}) / static_cast<double>(from[0]));
  }
};

/// -1/n Σᵢ log_softmax(xᵢ)[labelᵢ]: x [n, classes], labels [n] of 0 … classes - 1: a scalar.
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";

  constexpr Shape shape(const Shape& x, const Shape& labels) const {
    require(x.rank() == 2, "cross_entropy: the logits must be [n, classes]", x);
    require(labels == Shape{x[0]}, "cross_entropy: needs one label for each row of the logits", x, labels);
    return {};
  }
  constexpr std::int64_t flops(const Shape& x, const Shape&) const { return 5 * x.size(); }
  template <AnyTensor T>
  auto pullback(Needs<2>, const T&, const T& x, const typename T::Index& labels) const {
    return [x, labels](const T& g) {
      return std::array<T, 2>{eval(CrossEntropyGradient{}, g, x, labels), T{}};
    };
  }
  template <AnyTensor T> T decompose(const T& x, const typename T::Index& labels) const {
    return -mean(eval(Pick{}, log_softmax(x), labels));
  }
};

}  // namespace op

namespace detail {
template <class T>
concept ItsOwnIndex = std::same_as<T, typename T::Index>;  // ShapeTensor, which has no elements

/// Real numbers where labels are wanted.
template <class T>
concept RealLabels = std::floating_point<typename T::Element> && !ItsOwnIndex<T>;
}  // namespace detail

/// The mean cross-entropy -1/n Σᵢ log_softmax(xᵢ)[labelᵢ] of logits x [n, classes] and integer labels [n], as
/// PyTorch's `cross_entropy`. A label outside 0 … classes - 1 is an `Error`. The result is rounded to X's
/// elements, which is no matter to gradients; of bfloat16 logits, log the loss of `widen(logits)`.
template <AnyTensor X, AnyTensor Labels> constexpr auto cross_entropy(const X& logits, const Labels& labels) {
  if constexpr (detail::RealLabels<Labels>)
    static_assert(!detail::RealLabels<Labels>,
                  "cross_entropy: the labels must be integers, one class a row, such as a CpuArray::Index");
  else
    return eval(op::CrossEntropy{}, logits, labels);
}

/// The cross-entropy with labels smoothed (Szegedy et al., "Rethinking the Inception Architecture for
/// Computer Vision", 2015): every class has a probability of smoothing / classes, and the label's what is
/// left, as PyTorch's `label_smoothing`. Throws `Error` unless 0 <= smoothing <= 1.
template <AnyTensor X, AnyTensor Labels>
constexpr X cross_entropy(const X& logits, const Labels& labels, double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1))
    detail::throw_error("cross_entropy", "the smoothing must be from 0 to 1");
  if (smoothing == 0) return cross_entropy(logits, labels);
  return cross_entropy(logits, labels) * (1 - smoothing) - mean(log_softmax(logits)) * smoothing;
}

/// The element that `labels[i]` names in row i of x [n, classes]: [n].
template <AnyTensor X, AnyTensor Labels> constexpr auto pick(const X& x, const Labels& labels) {
  return eval(op::Pick{}, x, labels);
}

}  // namespace taut
