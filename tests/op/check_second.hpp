#pragma once
// Checks of second derivatives: the first ones, computed by `Grad<Grad<T>>`, are differentiated again.

#include <string>
#include <vector>

#include "check_gradients.hpp"

namespace taut::test {

/// Derivatives of Σₖ ⟨direction, gradient by operand k⟩.
struct SecondDerivatives {
  std::vector<Reference> by_operands;  ///< the Hessian times the direction
  Reference by_cotangent;              ///< the derivative of the result in the direction
};

template <class T>
SecondDerivatives differentiate_twice(const Program<Grad<Grad<T>>>& call, const Point& point,
                                      unsigned tracked) {
  using Once = Grad<T>;
  using Twice = Grad<Once>;
  std::vector<Once> leaves;
  for (auto& x : to_tensors<T>(point.operands)) leaves.emplace_back(std::move(x));
  for (std::size_t k = 0; k < leaves.size(); ++k)
    if (contains(tracked, k)) leaves[k].track();
  const Once cotangent = Once(to_tensor<T>(point.cotangent)).track();

  Tape<T> outer;
  Once total = Once::zeros({});
  {
    std::vector<Twice> inner_leaves(leaves.begin(), leaves.end());
    for (std::size_t k = 0; k < leaves.size(); ++k)
      if (contains(tracked, k)) inner_leaves[k].track();
    Tape<Once> inner;
    const Twice y = call.by_reference(inner_leaves);
    if (inner.recorded(y)) inner.backward(y, cotangent);
    for (std::size_t k = 0; k < leaves.size(); ++k)
      if (inner_leaves[k].has_grad())
        total = total + sum(inner_leaves[k].grad() * to_tensor<T>(point.direction[k], k));
  }
  if (outer.recorded(total)) outer.backward(total);

  const auto gradient = [](const Once& leaf) {
    return leaf.has_grad() ? to_reference(leaf.grad()) : to_reference(T::zeros(leaf.shape()));
  };
  SecondDerivatives result;
  for (const auto& leaf : leaves) result.by_operands.push_back(gradient(leaf));
  result.by_cotangent = gradient(cotangent);
  return result;
}

/// What they should be: differences of the first derivatives, which have been found right, and of the oracle.
inline SecondDerivatives difference_gradients(const Case& c, const Point& point, unsigned tracked) {
  Complaints ignored;
  std::vector<Reference> direction = point.direction;
  for (std::size_t k = 0; k < direction.size(); ++k)
    if (!contains(tracked, k)) direction[k].values.assign(direction[k].values.size(), 0.0);
  SecondDerivatives result;
  for (std::size_t k = 0; k < point.operands.size(); ++k) {
    result.by_operands.push_back({point.operands[k].shape, {}});
    result.by_operands.back().values = difference([&](double t) {
      Point at = point;
      at.operands = moved_along(point.operands, direction, t);
      const auto gradients = differentiate("", c.call.grad, at, tracked, Passing::lvalues, ignored);
      return gradients[k] ? gradients[k]->values : std::vector<double>(point.operands[k].values.size(), 0.0);
    });
  }
  result.by_cotangent = {point.cotangent.shape, difference_along(c, point.operands, direction)};
  return result;
}

inline void check_second_derivatives(const Case& c, const Point& point, const std::string& where,
                                     unsigned tracked, Complaints& complaints) {
  const bool all = tracked == subset_count(point.operands.size()) - 1;
  const auto got = differentiate_twice(c.call.grad_grad, point, tracked),
             expected = difference_gradients(c, point, tracked);
  const auto compare_one = [&](const std::string& what, const Reference& x, const Reference& want) {
    const double tolerance = 10 * difference_tolerance * std::max(1.0, largest_size(want));
    compare(
        what, x, want, [=](std::size_t) { return tolerance; }, complaints);
  };
  for (std::size_t k = 0; k < got.by_operands.size(); ++k) {
    const std::string what = where + ", the second derivative by operand " + std::to_string(k);
    compare_one(what, got.by_operands[k], expected.by_operands[k]);
    if (!all || got.by_operands[k].values.empty() || point.cotangent.values.empty()) continue;
    const double largest = largest_size(got.by_operands[k]);
    const bool curved = c.operands[k].differentiable && c.operands[k].curved;
    if (curved && !(largest > smallest_compared))
      complaints.push_back(what + " is zero, so that comparing it says nothing");
    if (!curved && largest != 0) complaints.push_back(what + " should be zero");
  }
  compare_one(where + ", the second derivative by the cotangent", got.by_cotangent, expected.by_cotangent);
}

#if TAUT_TEST_CUDA
/// Compares the second derivatives of the CUDA leaf with those of the CPU.
inline void compare_second_derivatives(const Case& c, const Point& point, const std::string& where,
                                       unsigned tracked, Complaints& complaints) {
  const auto got = differentiate_twice(c.call.grad_grad_cuda, point, tracked);
  const auto right = differentiate_twice(c.call.grad_grad, point, tracked);
  const auto compare_one = [&](const std::string& what, const Reference& x, const Reference& want) {
    const double terms = static_cast<double>(point.cotangent.values.size());
    const double tolerance = 4 * gradient_tolerance<CudaTensor>(c, want, terms);
    compare(
        what, x, want, [=](std::size_t) { return tolerance; }, complaints);
  };
  for (std::size_t k = 0; k < got.by_operands.size(); ++k)
    compare_one(where + ", the second derivative by operand " + std::to_string(k), got.by_operands[k],
                right.by_operands[k]);
  compare_one(where + ", the second derivative by the cotangent", got.by_cotangent, right.by_cotangent);
}
#endif

/// Nothing in second derivatives is new to large tensors, so they are left out.
inline void check_second_derivatives(const Case& c, const Shapes& shapes, Complaints& complaints) {
  if (!is_small(shapes)) return;
  const Point point = make_point<float>(c, shapes);
#if TAUT_TEST_CUDA
  using T = CudaTensor;
  const auto check = compare_second_derivatives;
#else
  using T = Double;
  void (*const check)(const Case&, const Point&, const std::string&, unsigned, Complaints&) =
      check_second_derivatives;
#endif
  for (const auto& setting : Leaf<T>::few_settings(shapes)) {
    const Leaf<T>::Using scope(setting);
    for (unsigned tracked = 1; tracked < subset_count(shapes.size()); ++tracked)
      check(c, point,
            "second derivative of " + c.name + " " + describe(shapes) + ", " + setting.describe() +
                ", tracked" + describe_subset(tracked),
            tracked, complaints);
  }
}

}  // namespace taut::test
