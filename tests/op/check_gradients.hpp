#pragma once
// Checks of first derivatives: against finite differences of the oracle, for every choice of tracked
// operands, on lvalues and on rvalues, in float and in double.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"

namespace taut::test {

/// The step of finite differences; the error of the five-point rule is of its fourth power.
inline constexpr double difference_step = 4e-4;

/// How far a derivative may be from finite differences, relative to the largest, or to 1.
inline constexpr double difference_tolerance = 2e-8;

/// Derivatives none of which are larger are taken for zero.
inline constexpr double smallest_compared = 1e-7;

/// Tensors of up to so many elements are differenced by each element, larger ones in one direction.
inline constexpr std::size_t most_elements_differenced = 120;

/// x + t v
inline std::vector<Reference> moved_along(std::vector<Reference> x, const std::vector<Reference>& v,
                                          double t) {
  for (std::size_t k = 0; k < x.size(); ++k)
    for (std::size_t i = 0; i < x[k].values.size(); ++i) x[k].values[i] += t * v[k].values[i];
  return x;
}

/// d/dt f(t) at 0, for each number of a list that f returns, by central differences with five points.
template <class F> std::vector<double> difference(const F& f) {
  const double h = difference_step;
  const auto a = f(-2 * h), b = f(-h), c = f(h), d = f(2 * h);
  std::vector<double> slope(a.size());
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = (a[i] - 8 * b[i] + 8 * c[i] - d[i]) / (12 * h);
  return slope;
}

/// d/dt f(x + t v) at t = 0 of the oracle's result.
inline std::vector<double> difference_along(const Case& c, const std::vector<Reference>& x,
                                            const std::vector<Reference>& v) {
  return difference([&](double t) { return c.oracle(moved_along(x, v, t)).values; });
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

inline std::vector<Reference> zeros_like(std::vector<Reference> xs) {
  for (auto& x : xs) std::fill(x.values.begin(), x.values.end(), 0.0);
  return xs;
}

/// A point at which a case is differentiated, in values that elements can hold, and what is multiplied with.
struct Point {
  std::vector<Reference> operands;
  std::vector<Reference> direction;  ///< one of the operands, zero for those that are not differentiable
  Reference cotangent;
};

template <class E> Point make_point(const Case& c, const Shapes& shapes) {
  Point point{fill_operands<E>(c, shapes), {}, {}};
  Generator random = seeded(c, shapes);
  random.discard(1000000);
  const auto fill = [&](const Shape& shape, bool zero) {
    Reference x{shape, away_from_zero(0.5, 1.5)(element_count(shape), random)};
    for (double& value : x.values) value = zero ? 0.0 : static_cast<double>(static_cast<E>(value));
    return x;
  };
  for (std::size_t k = 0; k < shapes.size(); ++k)
    point.direction.push_back(fill(shapes[k], !c.operands[k].differentiable));
  point.cotangent = fill(c.oracle(point.operands).shape, false);
  return point;
}

/// How operands are passed to the program that is differentiated.
enum class Passing {
  lvalues,
  rvalues,  ///< unique temporaries, whose buffers kernels may reuse
  twice     ///< the sum of two calls, which so get one cotangent
};

inline const char* to_string(Passing passing) {
  return passing == Passing::lvalues   ? "lvalues"
         : passing == Passing::rvalues ? "rvalues"
                                       : "the sum of two calls";
}

/// The gradients by the operands, absent where none arrived.
using Gradients = std::vector<std::optional<Reference>>;

/// Differentiates ⟨cotangent, op(operands)⟩ by the operands in `tracked`. Complains if anything that is not
/// a gradient changes on the way.
template <class T>
Gradients differentiate(const std::string& what, const Program<Grad<T>>& call, const Point& point,
                        unsigned tracked, Passing passing, Complaints& complaints) {
  std::vector<Grad<T>> leaves;
  for (auto& x : to_tensors<T>(point.operands)) leaves.emplace_back(std::move(x));
  for (std::size_t k = 0; k < leaves.size(); ++k)
    if (contains(tracked, k)) leaves[k].track();

  Tape<T> tape;
  Grad<T> y;
  if (passing == Passing::rvalues) {
    std::vector<Grad<T>> temporaries;
    for (const auto& leaf : leaves) temporaries.push_back(leaf + 0.0);
    y = call.by_move(temporaries);
  } else if (passing == Passing::lvalues) {
    y = call.by_reference(leaves);
  } else {
    y = call.by_reference(leaves) + call.by_reference(leaves);
  }

  const Reference result = to_reference(y.value());
  const T cotangent = to_tensor<T>(point.cotangent);
  if (tape.recorded(y)) tape.backward(y, cotangent);
  expect_unchanged(what + ", the cotangent", cotangent, point.cotangent, complaints);
  expect_unchanged(what + ", the result", y.value(), result, complaints);
  Gradients gradients(leaves.size());
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    expect_unchanged(what + ", operand " + std::to_string(k), leaves[k].value(), point.operands[k],
                     complaints);
    if (leaves[k].has_grad()) gradients[k] = to_reference(leaves[k].grad());
  }
  return gradients;
}

/// Complains of a gradient that is missing, of the wrong shape, or there although nothing can arrive.
inline bool expect_presence(const std::string& what, const Gradients& gradients, std::size_t k, bool expected,
                            const Shape& shape, Complaints& complaints) {
  const std::string by = what + ", the gradient by operand " + std::to_string(k);
  if (gradients[k].has_value() != expected) {
    complaints.push_back(by + (expected ? " is missing" : " should not be there"));
    return false;
  }
  if (!expected) return false;
  if (gradients[k]->shape != shape) {
    complaints.push_back(by + " has the shape " + to_string(gradients[k]->shape) + " instead of " +
                         to_string(shape));
    return false;
  }
  return true;
}

/// Compares gradients with finite differences of the oracle, and asks that they are not zero.
inline void compare_with_differences(const Case& c, const std::string& what, const Point& point,
                                     const Gradients& gradients, Complaints& complaints) {
  double along_direction = 0, scale = 1;
  std::size_t elements = 0;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const Reference& x = point.operands[k];
    const std::string by = what + ", the gradient by operand " + std::to_string(k);
    if (!expect_presence(what, gradients, k, c.operands[k].differentiable, x.shape, complaints)) continue;
    elements += x.values.size();
    along_direction += dot(gradients[k]->values, point.direction[k].values);
    for (const double value : gradients[k]->values) scale += std::abs(value);
    if (!x.values.empty() && !point.cotangent.values.empty() &&
        !(largest_size(*gradients[k]) > smallest_compared))
      complaints.push_back(by + " is zero, so that comparing it says nothing");
    if (x.values.size() > most_elements_differenced) continue;
    Reference expected{x.shape, {}};
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      auto unit = zeros_like(point.operands);
      unit[k].values[i] = 1;
      expected.values.push_back(dot(difference_along(c, point.operands, unit), point.cotangent.values));
    }
    const double tolerance = difference_tolerance * std::max(1.0, largest_size(expected));
    compare(
        by, *gradients[k], expected, [=](std::size_t) { return tolerance; }, complaints);
  }
  if (elements <= most_elements_differenced) return;
  const double expected = dot(difference_along(c, point.operands, point.direction), point.cotangent.values);
  if (!agree(along_direction, expected, difference_tolerance * scale))
    complaints.push_back(what + ", the derivative in a random direction is " + number(along_direction) +
                         " instead of " + number(expected));
}

/// How far gradients may be off that are sums over `terms` elements each.
template <class T> double gradient_tolerance(const Case& c, const Reference& right, double terms) {
  using E = typename T::Element;
  const double of_element = std::is_same_v<E, float> ? c.gradient_ulps : std::is_same_v<E, double> ? 64 : 2;
  const double ulps = Leaf<T>::tolerance * of_element;
  return ulps * Precision<E>::epsilon * (largest_size(right) + std::sqrt(std::max(terms, 1.0)));
}

/// Compares gradients with those that have been found right.
template <class T>
void compare_with_right_ones(const Case& c, const std::string& what, const Point& point, unsigned tracked,
                             double factor, const Gradients& gradients, const Gradients& right,
                             Complaints& complaints) {
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const bool expected = contains(tracked, k) && c.operands[k].differentiable;
    if (!expect_presence(what, gradients, k, expected, point.operands[k].shape, complaints)) continue;
    if (!right[k]) continue;
    Reference want = *right[k];
    for (double& value : want.values) value *= factor;
    // Where a gradient is summed over an axis along which its operand was repeated, errors add up.
    const double terms = static_cast<double>(point.cotangent.values.size()) /
                         static_cast<double>(std::max<std::size_t>(want.values.size(), 1));
    const double tolerance = gradient_tolerance<T>(c, want, terms);
    compare(
        what + ", the gradient by operand " + std::to_string(k), *gradients[k], want,
        [=](std::size_t) { return tolerance; }, complaints);
  }
}

template <class T>
void check_gradients(const Case& c, const Program<Grad<T>>& call, const Point& point, const Shapes& shapes,
                     const std::string& where, const Gradients& right, Complaints& complaints) {
  const unsigned all = subset_count(c.operands.size()) - 1;
  for (const auto& setting : Leaf<T>::settings(shapes)) {
    const typename Leaf<T>::Using scope(setting);
    for (unsigned tracked = is_small(shapes) ? 1 : all; tracked <= all; ++tracked)
      for (const auto passing : {Passing::lvalues, Passing::rvalues, Passing::twice}) {
        const std::string what = where + " of " + Leaf<T>::name + ", " + setting.describe() + ", " +
                                 to_string(passing) + ", tracked" + describe_subset(tracked);
        const auto gradients = differentiate(what, call, point, tracked, passing, complaints);
        compare_with_right_ones<T>(c, what, point, tracked, passing == Passing::twice ? 2 : 1, gradients,
                                   right, complaints);
      }
  }
}

inline void check_gradients(const Case& c, const Shapes& shapes, Complaints& complaints) {
  const std::string where = "gradient of " + c.name + " " + describe(shapes);
  const auto in_double = [&](const Point& point) {
    return differentiate(where, c.call.grad, point, subset_count(shapes.size()) - 1, Passing::lvalues,
                         complaints);
  };
  const Point point = make_point<float>(c, shapes);
  const auto right = in_double(point);
#if TAUT_TEST_CUDA
  check_gradients(c, c.call.grad_cuda, point, shapes, where, right, complaints);
  const Point rounded = make_point<bfloat16>(c, shapes);
  check_gradients(c, c.call.grad_cuda_half, rounded, shapes, where, in_double(rounded), complaints);
#else
  compare_with_differences(c, where, point, right, complaints);
  check_gradients(c, c.call.grad_single, point, shapes, where, right, complaints);
  check_gradients(c, c.call.grad, point, shapes, where, right, complaints);
#endif
}

}  // namespace taut::test
