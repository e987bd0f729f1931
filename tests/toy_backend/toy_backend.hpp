#pragma once
// Somebody else's backend: `toy::Array` runs all of Taut's programs on strided views of doubles. It stands
// outside of the library, which knows nothing of it, and is made to be read, not to be fast.
// docs/adding-a-backend.md walks through it.

#include <taut/concepts.hpp>
#include <taut/optim/update.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace toy {

namespace op = taut::op;
using taut::Shape;

/// A number for each axis: a position in a tensor, or strides.
using PerAxis = std::array<std::int64_t, taut::max_rank>;

/// Calls f(position) for all positions in a tensor of the shape, in row-major order.
template <class F> void for_each(const Shape& shape, const F& f) {
  PerAxis at{};
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    f(at);
    for (int axis = shape.rank() - 1; axis >= 0 && ++at[axis] == shape[axis]; --axis) at[axis] = 0;
  }
}

/// A view of numbers: the element at position i stands at offset + Σ iₐ strideₐ of a buffer, which several
/// views may share. Only a kernel that has just made a buffer writes to it.
template <class E> class Strided : public taut::TensorBase {
 public:
  using Element = E;
  using Index = Strided<std::int64_t>;

  Strided() : shape_{0} {}

  static Strided full(const Shape& shape, E value) {
    return generate(shape, [=](std::uint64_t) { return value; });
  }
  static Strided zeros(const Shape& shape) { return full(shape, E(0)); }
  static Strided ones(const Shape& shape) { return full(shape, E(1)); }
  static Strided from_host(std::span<const E> values, const Shape& shape) {
    const auto count = static_cast<std::int64_t>(values.size());
    taut::require(count == shape.size(), "from_host: the number of values is not that of the shape", shape);
    return generate(shape, [=](std::uint64_t i) { return values[i]; });
  }
  static Strided uniform(const Shape& shape, E low, E high, taut::Rng& rng) {
    const auto stream = rng.draw(static_cast<std::uint64_t>(shape.size()));
    return generate(shape, [&](std::uint64_t i) {
      return taut::RandomStream::affine(stream.uniform<E>(i), low, high - low);
    });
  }
  static Strided normal(const Shape& shape, E mean, E deviation, taut::Rng& rng) {
    const auto stream = rng.draw(static_cast<std::uint64_t>(shape.size()));
    return generate(shape, [&](std::uint64_t i) {
      return taut::RandomStream::affine(stream.normal<E>(i), mean, deviation);
    });
  }

  const Shape& shape() const { return shape_; }
  std::vector<E> to_host() const {
    std::vector<E> values;
    for_each(shape_, [&](const PerAxis& at) { values.push_back((*this)[at]); });
    return values;
  }
  E item() const {
    taut::require(shape_.size() == 1, "item: takes a tensor of one element", shape_);
    return (*this)[{}];
  }

  // For kernels.
  const E& operator[](const PerAxis& at) const { return (*buffer_)[place(at)]; }
  E& operator[](const PerAxis& at) { return (*buffer_)[place(at)]; }
  const PerAxis& strides() const { return strides_; }

  /// The same buffer, seen otherwise.
  Strided view(const Shape& shape, const PerAxis& strides, std::int64_t offset = 0) const {
    Strided seen = *this;
    seen.shape_ = shape;
    seen.strides_ = strides;
    seen.offset_ += offset;
    return seen;
  }

  /// The same elements in row-major order under another shape, in a buffer of their own.
  Strided copy(const Shape& shape) const { return from_host(to_host(), shape); }

 private:
  template <class F> static Strided generate(const Shape& shape, const F& element) {
    Strided made;
    made.buffer_ = std::make_shared<std::vector<E>>();
    made.shape_ = shape;
    for (std::int64_t i = 0; i < shape.size(); ++i)
      made.buffer_->push_back(element(static_cast<std::uint64_t>(i)));
    std::int64_t stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; stride *= shape[axis], --axis) made.strides_[axis] = stride;
    return made;
  }

  std::size_t place(const PerAxis& at) const {
    std::int64_t sum = offset_;
    for (int axis = 0; axis < shape_.rank(); ++axis) sum += at[axis] * strides_[axis];
    return static_cast<std::size_t>(sum);
  }

  std::shared_ptr<std::vector<E>> buffer_;
  Shape shape_;
  PerAxis strides_{};
  std::int64_t offset_ = 0;
};

using Array = Strided<double>;

// ---- Movement: other views of the same buffer, as far as possible.

inline Array eval(const op::Reshape& op, const Array& x) { return x.copy(op.shape(x.shape())); }

inline Array eval(const op::Permute& op, const Array& x) {
  const Shape shape = op.shape(x.shape());
  PerAxis strides{};
  for (int i = 0; i < shape.rank(); ++i)
    strides[i] = x.strides()[taut::normalize_axis(op.name, op.order.items[i], x.shape())];
  return x.view(shape, strides);
}

inline Array eval(const op::BroadcastTo& op, const Array& x) {
  const Shape shape = op.shape(x.shape());
  const int added = shape.rank() - x.shape().rank();
  PerAxis strides{};  // 0 repeats
  for (int i = 0; i < x.shape().rank(); ++i)
    if (x.shape()[i] != 1) strides[i + added] = x.strides()[i];
  return x.view(shape, strides);
}

inline Array eval(const op::Slice& op, const Array& x) {
  const int axis = taut::normalize_axis(op.name, op.axis, x.shape());
  PerAxis strides = x.strides();
  const std::int64_t offset = op.start * strides[axis];
  strides[axis] *= op.step;
  return x.view(op.shape(x.shape()), strides, offset);
}

/// Writes x through a view.
inline void assign(Array to, const Array& x) {
  for_each(x.shape(), [&](const PerAxis& at) { to[at] = x[at]; });
}

inline Array eval(const op::Unslice& op, const Array& x) {
  const Array out = Array::zeros(op.shape(x.shape()));
  const std::int64_t stop = std::min(op.extent, op.start + x.shape()[op.axis] * op.step);
  assign(eval(op::Slice{op.axis, op.start, stop, op.step}, out), x);
  return out;
}

template <std::same_as<Array>... Xs> Array eval(const op::Concat& op, const Xs&... xs) {
  const Array out = Array::zeros(op.shape(xs.shape()...));
  std::int64_t start = 0;
  const auto append = [&](const Array& x) {
    assign(eval(op::Slice{op.axis, start, start + x.shape()[op.axis]}, out), x);
    start += x.shape()[op.axis];
  };
  (append(xs), ...);
  return out;
}

// ---- Elementwise operators: all of them, and those that are yet to be written.

template <taut::ElementwiseOp Op, std::same_as<Array>... Xs> Array eval(const Op& op, const Xs&... xs) {
  Array out = Array::zeros(taut::infer_shape(op, xs.shape()...));
  [&](const auto&... repeated) {
    for_each(out.shape(), [&](const PerAxis& at) { out[at] = op(repeated[at]...); });
  }(broadcast_to(xs, out.shape())...);
  return out;
}

// ---- Reductions: written through a view that repeats the result along the reduced axes.

template <class F> Array reduce(const Array& x, const Shape& kept, double start, const F& combine) {
  const Array out = Array::full(kept, start);
  Array repeated = broadcast_to(out, x.shape());
  for_each(x.shape(), [&](const PerAxis& at) { repeated[at] = combine(repeated[at], x[at]); });
  return out;
}

inline Array eval(const op::SumTo& op, const Array& x) {
  return reduce(x, op.shape(x.shape()), 0, std::plus<double>{});
}

inline Array eval(const op::Sum& op, const Array& x) {
  const Shape kept = taut::reduced_shape(op.name, op.axes, true, x.shape());
  return reduce(x, kept, 0, std::plus<double>{}).copy(op.shape(x.shape()));
}

template <bool Largest> Array eval(const op::Extreme<Largest>& op, const Array& x) {
  const Shape kept = taut::reduced_shape(op.name, op.axes, true, x.shape()), shape = op.shape(x.shape());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return reduce(x, kept, Largest ? -infinity : infinity,
                [](double a, double b) { return Largest ? taut::maximum(a, b) : taut::minimum(a, b); })
      .copy(shape);
}

inline Array::Index eval(const op::Argmax& op, const Array& x) {
  const Shape shape = op.shape(x.shape());
  const int axis = taut::normalize_axis(op.name, op.axis, x.shape());
  auto out = Array::Index::zeros(taut::reduced_shape(op.name, {axis}, true, x.shape()));
  for_each(out.shape(), [&](const PerAxis& at) {
    PerAxis best = at, next = at;
    for (next[axis] = 1; next[axis] < x.shape()[axis]; ++next[axis])
      if (x[next] > x[best] || (std::isnan(x[next]) && !std::isnan(x[best]))) best = next;
    out[at] = best[axis];
  });
  return out.copy(shape);
}

// ---- Matrix products. `Linear`, `Softmax`, `LogSoftmax` and `CrossEntropy` need no kernels: they decompose.

inline Array eval(const op::Matmul& op, const Array& a, const Array& b) {
  Array out = Array::zeros(op.shape(a.shape(), b.shape()));
  const int row = out.shape().rank() - 2, column = row + 1;
  const auto with_batch = [&](const Array& matrices) {
    Shape shape = out.shape();
    shape[row] = matrices.shape()[-2];
    shape[column] = matrices.shape()[-1];
    return broadcast_to(matrices, shape);
  };
  const Array left = with_batch(op.transpose_a ? transpose(a) : a);
  const Array right = with_batch(op.transpose_b ? transpose(b) : b);
  for_each(out.shape(), [&](const PerAxis& at) {
    PerAxis l = at, r = at;
    for (std::int64_t k = 0; k < left.shape()[column]; ++k) {
      l[column] = r[row] = k;
      out[at] += left[l] * right[r];
    }
  });
  return out;
}

// ---- Selection by integer labels, and dropout.

inline std::int64_t checked(std::string_view op, std::int64_t label, std::int64_t classes) {
  if (label < 0 || label >= classes)
    throw taut::Error(std::string(op) + ": label " + std::to_string(label) + " is not one of " +
                      std::to_string(classes) + " classes");
  return label;
}

inline Array eval(const op::Pick& op, const Array& x, const Array::Index& labels) {
  Array out = Array::zeros(op.shape(x.shape(), labels.shape()));
  for_each(out.shape(), [&](const PerAxis& at) {
    out[at] = x[PerAxis{at[0], checked(op.name, labels[at], x.shape()[1])}];
  });
  return out;
}

inline Array eval(const op::Unpick& op, const Array& x, const Array::Index& labels) {
  Array out = Array::zeros(op.shape(x.shape(), labels.shape()));
  for_each(x.shape(), [&](const PerAxis& at) {
    out[PerAxis{at[0], checked(op.name, labels[at], op.classes)}] = x[at];
  });
  return out;
}

inline Array eval(const op::Dropout& op, const Array& x) {
  Array out = Array::zeros(op.shape(x.shape()));
  std::uint64_t i = 0;
  for_each(x.shape(), [&](const PerAxis& at) {
    if (op.stream.uniform<float>(i++) >= static_cast<float>(op.p)) out[at] = x[at] / (1 - op.p);
  });
  return out;
}

// ---- Optimizers.

template <int N> double sum_of_squares(std::span<const taut::optim::UpdateItem<Array, N>> items) {
  double total = 0;
  for (const auto& item : items) total += sum(square(*item.gradient)).item();
  return total;
}

template <class Rule, int N>
void apply_update(const Rule& rule, double scale, std::span<const taut::optim::UpdateItem<Array, N>> items) {
  for (const auto& item : items) {
    Array& parameter = *item.parameter = item.parameter->copy(item.parameter->shape());
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      for_each(parameter.shape(), [&](const PerAxis& at) {
        rule(parameter[at], scale * (*item.gradient)[at], (*item.state[K])[at]...);
      });
    }
    (std::make_index_sequence<N>{});
  }
}

static_assert(taut::DifferentiableTensor<Array>);

}  // namespace toy
