#pragma once
// Checks of an operator's results: values against the oracle, shapes, what happens to operands, errors.

#include <algorithm>
#include <string>
#include <vector>

#include "check.hpp"

namespace taut::test {

/// An operand that was passed as a unique rvalue.
template <class T> struct Reusable {
  const typename T::Element* data;
  decltype(std::declval<T>().layout()) layout;
};

/// Complains unless a result lies in the buffer of one of the candidates that lie as it does.
template <class T>
void expect_reuse(const std::string& what, const T& result, std::vector<Reusable<T>> candidates,
                  Complaints& complaints) {
  std::erase_if(candidates, [&](const auto& candidate) { return candidate.layout != result.layout(); });
  if (candidates.empty() || result.shape().size() == 0) return;
  if (std::none_of(candidates.begin(), candidates.end(),
                   [&](const auto& candidate) { return candidate.data == result.data(); }))
    complaints.push_back(what + ": the buffer of a unique rvalue was not reused");
}

/// Runs a case on rvalues of which those in `shared` have other owners, who must not notice.
template <class T>
void check_moved(const Case& c, const Program<T>& call, const std::string& what,
                 const std::vector<Reference>& operands, const Reference& expected, unsigned shared,
                 Complaints& complaints) {
  auto xs = to_tensors<T>(operands);
  std::vector<T> owners(xs.size());
  std::vector<Reusable<T>> reusable;
  for (std::size_t k = 0; k < xs.size(); ++k) {
    if (contains(shared, k))
      owners[k] = xs[k];
    else if (xs[k].shape() == expected.shape)
      reusable.push_back({xs[k].data(), xs[k].layout()});
  }
  const auto result = call.by_move(xs);
  compare_ulps<typename T::Element>(what, to_reference(result), expected, Leaf<T>::tolerance * c.ulps,
                                    complaints);
  if (c.reuses) expect_reuse(what, result, reusable, complaints);
  for (std::size_t k = 0; k < xs.size(); ++k)
    if (contains(shared, k))
      expect_unchanged(what + ", shared operand " + std::to_string(k), owners[k], operands[k], complaints);
}

/// Runs a case on lvalues, which must not change.
template <class T>
void check_lvalues(const Case& c, const Program<T>& call, const std::string& what, const std::vector<T>& xs,
                   const std::vector<Reference>& operands, const Reference& expected,
                   Complaints& complaints) {
  compare_ulps<typename T::Element>(what, to_reference(call.by_reference(xs)), expected,
                                    Leaf<T>::tolerance * c.ulps, complaints);
  for (std::size_t k = 0; k < xs.size(); ++k)
    expect_unchanged(what + ", operand " + std::to_string(k), xs[k], operands[k], complaints);
}

/// The values of a case for operands of one list of shapes: on lvalues, on rvalues each of which is unique or
/// shared, and, where the shapes are equal, on one array in all places.
template <class T>
void check_values(const Case& c, const Program<T>& call, const Shapes& shapes, Complaints& complaints) {
  const auto operands = fill_operands<typename T::Element>(c, shapes);
  const Reference expected = c.oracle(operands);
  const std::vector<Reference> same(operands.size(), operands[0]);
  const bool equal = operands.size() > 1 && std::all_of(shapes.begin(), shapes.end(), [&](const auto& shape) {
                       return shape == shapes[0];
                     });
  const Reference expected_same = equal ? c.oracle(same) : Reference{};
  for (const auto& setting : Leaf<T>::settings(shapes)) {
    const typename Leaf<T>::Using scope(setting);
    const std::string what =
        c.name + " of " + Leaf<T>::name + " " + describe(shapes) + ", " + setting.describe();
    check_lvalues(c, call, what, to_tensors<T>(operands), operands, expected, complaints);
    const unsigned all = subset_count(shapes.size()) - 1;
    for (unsigned shared = 0; shared <= all; shared = is_small(shapes) || shared == all ? shared + 1 : all)
      check_moved(c, call, what + ", rvalues", operands, expected, shared, complaints);
    if (equal)
      check_lvalues(c, call, what + ", one array for all operands",
                    std::vector(operands.size(), to_tensor<T>(operands[0])), same, expected_same, complaints);
  }
}

#if !TAUT_TEST_CUDA
/// `ShapeTensor` gives the shape of the oracle's result.
inline void check_shape(const Case& c, const Shapes& shapes, Complaints& complaints) {
  const Reference expected = c.oracle(fill_operands<double>(c, shapes));
  std::vector<ShapeTensor> xs;
  for (const auto& shape : shapes) xs.emplace_back(shape);
  const Shape got = c.call.shapes.by_reference(xs).shape();
  if (got != expected.shape)
    complaints.push_back(c.name + " of ShapeTensor " + describe(shapes) + ": the shape is " + to_string(got) +
                         " instead of " + to_string(expected.shape));
}
#endif

/// Complains unless a program throws a `ShapeError` that begins with the operator's name and shows the
/// operands' shapes, or those two of more that disagree.
template <class T, class Make>
void check_rejected(const Case& c, const Program<T>& call, const std::string& interpretation,
                    const Shapes& shapes, const Make& make, Complaints& complaints) {
  const std::string what = c.name + " of " + interpretation + " " + describe(shapes);
  std::vector<T> xs;
  for (const auto& shape : shapes) xs.push_back(make(shape));
  std::string text;
  try {
    (void)call.by_reference(xs);
    complaints.push_back(what + ": no error is thrown");
    return;
  } catch (const ShapeError& error) {
    text = error.what();
  } catch (const std::exception& error) {
    complaints.push_back(what + ": throws something else than a ShapeError: " + error.what());
    return;
  }
  const std::string start = (c.error.empty() ? c.name : c.error) + ":";
  if (text.rfind(start, 0) != 0)
    complaints.push_back(what + ": the error does not begin with '" + start + "': " + text);
  const auto shown = std::count_if(shapes.begin(), shapes.end(), [&](const Shape& shape) {
    return text.find(to_string(shape)) != std::string::npos;
  });
  if (shown < 2 && shown < static_cast<std::ptrdiff_t>(shapes.size()))
    complaints.push_back(what + ": the error does not show the shapes: " + text);
}

/// The same for the leaf, for `ShapeTensor` and for `Grad`.
inline void check_rejected(const Case& c, const Shapes& shapes, Complaints& complaints) {
#if TAUT_TEST_CUDA
  check_rejected(
      c, c.call.cuda, "CudaTensor", shapes, [](const Shape& shape) { return CudaTensor::ones(shape); },
      complaints);
#else
  const auto ones = [](const Shape& shape) { return Double::ones(shape); };
  const auto shape_only = [](const Shape& shape) { return ShapeTensor(shape); };
  const auto leaf = [](const Shape& shape) { return Grad<Double>(Double::ones(shape)).track(); };
  check_rejected(c, c.call.plain, "double", shapes, ones, complaints);
  check_rejected(c, c.call.shapes, "ShapeTensor", shapes, shape_only, complaints);
  if (!c.has_gradient) return;
  const Tape<Double> tape;
  check_rejected(c, c.call.grad, "Grad", shapes, leaf, complaints);
#endif
}

}  // namespace taut::test
