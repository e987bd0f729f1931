#pragma once
// What operators are compared with: plain loops in double over plain vectors. Of Taut only `Shape` is used,
// as a list of extents.

#include <taut/core/shape.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace taut::test {

/// A tensor on the host, in row-major order.
struct Reference {
  Shape shape;
  std::vector<double> values;
  /// For each element the size of the terms that it was summed from, to which its rounding errors are
  /// proportional; empty where that is the element itself.
  std::vector<double> scale = {};
};

/// An operator by definition: its result for some operands.
using Oracle = std::function<Reference(const std::vector<Reference>&)>;

using Index = std::vector<std::int64_t>;

inline std::size_t element_count(const Shape& shape) {
  std::size_t n = 1;
  for (int i = 0; i < shape.rank(); ++i) n *= static_cast<std::size_t>(shape[i]);
  return n;
}

/// Calls visit(index) for every index below the shape's extents, in row-major order.
inline void for_each_index(const Shape& shape, const std::function<void(const Index&)>& visit) {
  Index index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::size_t n = element_count(shape); n > 0; --n) {
    visit(index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      auto& i = index[static_cast<std::size_t>(axis)];
      if (++i < shape[axis]) break;
      i = 0;
    }
  }
}

/// x (1 + tanh u) / 2 with u = √(2/π) (x + 0.044715 x³), which is x / (1 + exp(-2 u)).
inline double gelu_tanh_by_definition(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

/// The position in row-major order.
inline std::size_t flat(const Shape& shape, const Index& index) {
  std::int64_t position = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    position = position * shape[axis] + index[static_cast<std::size_t>(axis)];
  return static_cast<std::size_t>(position);
}

/// The position in a tensor that broadcasts: leading axes are dropped, extents of one stay at 0.
inline std::size_t flat_broadcast(const Shape& shape, const Index& index) {
  const std::size_t dropped = index.size() - static_cast<std::size_t>(shape.rank());
  std::int64_t position = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = shape[axis] == 1 ? 0 : index[dropped + static_cast<std::size_t>(axis)];
    position = position * shape[axis] + i;
  }
  return static_cast<std::size_t>(position);
}

/// NumPy's broadcasting of shapes that are known to fit.
inline Shape broadcast_by_numpy(const std::vector<Reference>& operands) {
  int rank = 0;
  for (const auto& x : operands) rank = std::max(rank, x.shape.rank());
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    std::int64_t extent = 1;
    for (const auto& x : operands) {
      const int own = axis - (rank - x.shape.rank());
      if (own >= 0 && x.shape[own] != 1) extent = x.shape[own];
    }
    shape.push_back(extent);
  }
  return shape;
}

/// The oracle of an elementwise operator, from its function of one element of each operand.
inline Oracle elementwise(std::function<double(const std::vector<double>&)> f) {
  return [f = std::move(f)](const std::vector<Reference>& operands) {
    Reference result{broadcast_by_numpy(operands), {}};
    std::vector<double> x(operands.size());
    for_each_index(result.shape, [&](const Index& index) {
      for (std::size_t k = 0; k < x.size(); ++k)
        x[k] = operands[k].values[flat_broadcast(operands[k].shape, index)];
      result.values.push_back(f(x));
    });
    return result;
  };
}

/// The oracle of an operator of one operand that copies: element `index` of the result is element
/// source(index) of the operand, or 0 if that is empty.
inline Reference gather(const Reference& x, const Shape& shape,
                        const std::function<Index(const Index&)>& source) {
  Reference result{shape, {}};
  for_each_index(shape, [&](const Index& index) {
    const Index from = source(index);
    result.values.push_back(from.empty() && x.shape.rank() > 0 ? 0.0 : x.values[flat(x.shape, from)]);
  });
  return result;
}

/// Σ x over the axes for which `reduced` says so, with these axes at extent one.
inline Reference sum_over(const Reference& x, const std::function<bool(int)>& reduced) {
  Reference result{x.shape, {}};
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    if (reduced(axis)) result.shape[axis] = 1;
  std::vector<long double> sums(element_count(result.shape), 0);
  result.scale.assign(sums.size(), 0);
  for_each_index(x.shape, [&](const Index& index) {
    const auto to = flat_broadcast(result.shape, index);
    const double value = x.values[flat(x.shape, index)];
    sums[to] += value;
    result.scale[to] += std::abs(value);
  });
  result.values.assign(sums.begin(), sums.end());
  return result;
}

/// The same elements under another shape.
inline Reference with_shape(Reference x, const Shape& shape) {
  x.shape = shape;
  return x;
}

}  // namespace taut::test
