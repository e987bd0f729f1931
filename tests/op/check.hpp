#pragma once
// What the checks of the suite share: complaints, operands, comparison of tensors.

#include <taut/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "leaf.hpp"
#include "suite.hpp"

namespace taut::test {

inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

inline std::string describe(const Shapes& shapes) {
  std::string text;
  for (const auto& shape : shapes) text += (text.empty() ? "" : " x ") + to_string(shape);
  return text;
}

/// A generator whose numbers depend on the case and the shapes only.
inline Generator seeded(const Case& c, const Shapes& shapes) {
  std::uint64_t seed = 1469598103934665603u;
  for (const char letter : c.name + describe(shapes))
    seed = (seed ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  return Generator(seed);
}

/// Values of the given elements' precision for each operand of a case.
template <class E> std::vector<Reference> fill_operands(const Case& c, const Shapes& shapes) {
  Generator random = seeded(c, shapes);
  std::vector<Reference> operands;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    operands.push_back({shapes[k], c.operands.at(k).fill(element_count(shapes[k]), random)});
    for (double& value : operands.back().values) value = static_cast<double>(static_cast<E>(value));
  }
  return operands;
}

/// A reference as operand k of a leaf.
template <class T> T to_tensor(const Reference& x, std::size_t k = 0) {
  const std::vector<typename T::Element> values(x.values.begin(), x.values.end());
  return Leaf<T>::placed(T::from_host(values, x.shape), k);
}

template <class T> std::vector<T> to_tensors(const std::vector<Reference>& xs) {
  std::vector<T> tensors;
  for (std::size_t k = 0; k < xs.size(); ++k) tensors.push_back(to_tensor<T>(xs[k], k));
  return tensors;
}

template <class T> Reference to_reference(const T& x) {
  const auto values = x.to_host();
  return {x.shape(), std::vector<double>(values.begin(), values.end())};
}

/// Whether two numbers agree to `tolerance`; NaN agrees with NaN, an infinity with itself.
inline bool agree(double got, double expected, double tolerance) {
  if (std::isnan(expected) || std::isinf(expected) || std::isnan(got))
    return got == expected || (std::isnan(got) && std::isnan(expected));
  return std::abs(got - expected) <= tolerance;
}

inline double largest_size(const Reference& x) {
  double largest = 0;
  for (const double value : x.values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Complains of the first element off by more than `tolerance(element)`, and of another shape.
template <class Tolerance>
void compare(const std::string& what, const Reference& got, const Reference& expected,
             const Tolerance& tolerance, Complaints& complaints) {
  if (got.shape != expected.shape) {
    complaints.push_back(what + ": the shape is " + to_string(got.shape) + " instead of " +
                         to_string(expected.shape));
    return;
  }
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (agree(got.values[i], expected.values[i], tolerance(i))) continue;
    complaints.push_back(what + ": element " + std::to_string(i) + " is " + number(got.values[i]) +
                         " instead of " + number(expected.values[i]) + ", allowing " + number(tolerance(i)));
    return;
  }
}

/// The same with a tolerance in units of E's relative precision, and of its smallest denormal number.
template <class E>
void compare_ulps(const std::string& what, const Reference& got, const Reference& expected, double ulps,
                  Complaints& complaints) {
  const auto tolerance = [&](std::size_t i) {
    const double size = std::abs(expected.values[i]);
    const double scale = expected.scale.empty() ? size : std::max(size, expected.scale[i]);
    return ulps * std::max(scale * Precision<E>::epsilon, Precision<E>::smallest);
  };
  compare(what, got, expected, tolerance, complaints);
}

/// Complains unless the tensor still holds `expected` bit for bit.
template <class T>
void expect_unchanged(const std::string& what, const T& x, const Reference& expected,
                      Complaints& complaints) {
  compare(
      what + " was changed", to_reference(x), expected, [](std::size_t) { return 0.0; }, complaints);
}

/// Tensors of more elements go through fewer combinations.
inline constexpr std::size_t small = 2000;
inline bool is_small(const Shapes& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return element_count(s) <= small; });
}

/// The subsets of n operands, as bits.
inline unsigned subset_count(std::size_t n) { return 1u << n; }
inline bool contains(unsigned subset, std::size_t k) { return (subset >> k & 1) != 0; }
inline std::string describe_subset(unsigned subset) {
  std::string text;
  for (std::size_t k = 0; subset >> k; ++k) text += contains(subset, k) ? " " + std::to_string(k) : "";
  return text;
}

}  // namespace taut::test
