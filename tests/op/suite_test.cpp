// The suite finds planted bugs: each operator here is wrong in one way, and the check that is meant for it
// complains. A right operator gets no complaints.

#include "suite.hpp"

#include <algorithm>

namespace taut::test {

/// a b², done right or with one mistake; its rule saves both operands.
enum class Mistake {
  none,
  wrong_value,             ///< the kernel takes b instead of b²
  last_element_left_out,   ///< of lengths that are no multiple of 8
  operand_overwritten,     ///< the kernel writes into an operand that others share
  wrong_shape,             ///< the shape rule and the kernel disagree
  unchecked_shapes,        ///< shapes that do not fit are taken
  wrong_gradient,          ///< of b: without the factor 2
  second_operand_ignored,  ///< no gradient for b
  broadcast_not_summed,    ///< a gradient has the result's shape
  cotangent_overwritten,   ///< the rule writes into the incoming gradient, which others share
  zero_gradient,           ///< of a
  constant_gradient        ///< a right gradient that does not depend on b any more for `Grad<Grad<T>>`
};

struct Faulty {
  static constexpr std::string_view name = "faulty";
  Mistake mistake = Mistake::none;

  constexpr Shape shape(const Shape& a, const Shape& b) const {
    if (mistake == Mistake::unchecked_shapes && a.rank() == b.rank()) return a;
    return broadcast_shapes(name, a, b);
  }

  template <AnyTensor T> auto pullback(Needs<2> needs, const T&, const T& a, const T& b) const {
    return [=, m = mistake](T g) {
      std::array<T, 2> gradients;
      const T b_by_value = m == Mistake::constant_gradient ? as_constant(b) : b;
      if (needs[1] && m != Mistake::second_operand_ignored)
        gradients[1] = sum_to(g * a * b * (m == Mistake::wrong_gradient ? 1.0 : 2.0), b.shape());
      if (needs[0]) gradients[0] = g * square(b_by_value) * (m == Mistake::zero_gradient ? 0.0 : 1.0);
      if (needs[0] && m != Mistake::broadcast_not_summed) gradients[0] = sum_to(gradients[0], a.shape());
      if constexpr (depth<T>() == 0)
        if (m == Mistake::cotangent_overwritten)
          std::fill_n(g.mutable_data(), g.shape().size(), typename T::Element(7));
      return gradients;
    };
  }

 private:
  template <class T> static T as_constant(const T& x) {
    if constexpr (depth<T>() > 0)
      return x.detach();
    else
      return x;
  }
};

template <class E>
BasicCpuArray<E> eval(const Faulty& op, const BasicCpuArray<E>& a, const BasicCpuArray<E>& b) {
  const Shape shape = op.shape(a.shape(), b.shape());
  const Mistake m = op.mistake;
  if (m == Mistake::unchecked_shapes && a.shape() != b.shape()) return a;
  BasicCpuArray<E> result = a * (m == Mistake::wrong_value ? b : square(b));
  const auto n = shape.size();
  if (m == Mistake::last_element_left_out && n > 8 && n % 8 != 0) result.mutable_data()[n - 1] = 0;
  if (m == Mistake::operand_overwritten && b.shape() == shape) {
    auto alias = b;
    std::copy_n(result.data(), n, alias.mutable_data());
  }
  if (m == Mistake::wrong_shape) return reshape(result, {n});
  return result;
}

namespace {

Case faulty(Mistake mistake) {
  return {.name = "faulty",
          .call = programs<2>([mistake](auto&& a, auto&& b) { return eval(Faulty{mistake}, a, b); }),
          .oracle = elementwise([](const std::vector<double>& x) { return x[0] * x[1] * x[1]; }),
          .operands = {{}, {.fill = away_from_zero()}},
          .shapes = {{{7}, {7}}, {{33}, {33}}, {{2, 3}, {3}}, {{1}, {5}}, {{3, 4}, {3, 1}}},
          .rejected = {{{2}, {3}}},
          .ulps = 4};
}

/// Whether a complaint has all these words.
bool complains(const Complaints& complaints, std::initializer_list<std::string> words) {
  return std::any_of(complaints.begin(), complaints.end(), [&](const std::string& complaint) {
    return std::all_of(words.begin(), words.end(),
                       [&](const std::string& word) { return complaint.find(word) != std::string::npos; });
  });
}

TEST(Suite, AcceptsARightOperator) {
  const auto c = faulty(Mistake::none);
  EXPECT_TRUE(none(check_values(c)));
  EXPECT_TRUE(none(check_gradients(c)));
  EXPECT_TRUE(none(check_second_derivatives(c)));
}

TEST(Suite, FindsAWrongKernel) {
  EXPECT_TRUE(complains(check_values(faulty(Mistake::wrong_value)), {"element 0", "instead of"}));
}

TEST(Suite, FindsAWrongTail) {
  const auto complaints = check_values(faulty(Mistake::last_element_left_out));
  EXPECT_TRUE(complains(complaints, {"[33]", "element 32", "instead of"}));
  EXPECT_FALSE(complains(complaints, {"[7]"})) << "the others are right";
}

TEST(Suite, FindsAChangedOperand) {
  const auto complaints = check_values(faulty(Mistake::operand_overwritten));
  EXPECT_TRUE(complains(complaints, {"operand 1 was changed"}));
  EXPECT_TRUE(complains(complaints, {"shared operand 1 was changed"}));
}

TEST(Suite, FindsAWrongShape) {
  EXPECT_TRUE(complains(check_values(faulty(Mistake::wrong_shape)), {"the shape is [6] instead of [2, 3]"}));
}

TEST(Suite, FindsAMissingCheckOfShapes) {
  EXPECT_TRUE(complains(check_values(faulty(Mistake::unchecked_shapes)), {"no error is thrown"}));
}

TEST(Suite, FindsAnErrorOfAnotherOperator) {
  auto c = faulty(Mistake::none);
  c.error = "flawless";
  EXPECT_TRUE(complains(check_values(c), {"does not begin with 'flawless:'"}));
}

TEST(Suite, FindsABufferThatIsNotReused) {
  auto c = faulty(Mistake::none);
  c.reuses = true;  // it takes its operands by const reference
  EXPECT_TRUE(complains(check_values(c), {"was not reused"}));
}

TEST(Suite, FindsAWrongGradient) {
  const auto complaints = check_gradients(faulty(Mistake::wrong_gradient));
  EXPECT_TRUE(complains(complaints, {"gradient by operand 1", "instead of"}));
  EXPECT_FALSE(complains(complaints, {"gradient by operand 0"})) << "the other is right";
}

TEST(Suite, FindsAForgottenOperand) {
  EXPECT_TRUE(complains(check_gradients(faulty(Mistake::second_operand_ignored)),
                        {"gradient by operand 1", "has the shape [0] instead of [7]"}));
}

TEST(Suite, FindsAGradientThatIsNotSummed) {
  EXPECT_TRUE(complains(check_gradients(faulty(Mistake::broadcast_not_summed)),
                        {"gradient by operand 0", "has the shape [5] instead of [1]"}));
}

TEST(Suite, FindsALeakIntoASharedCotangent) {
  EXPECT_TRUE(
      complains(check_gradients(faulty(Mistake::cotangent_overwritten)), {"the cotangent was changed"}));
}

TEST(Suite, FindsAGradientOfZero) {
  EXPECT_TRUE(complains(check_gradients(faulty(Mistake::zero_gradient)), {"operand 0", "is zero"}));
}

TEST(Suite, FindsAWrongSecondDerivative) {
  const auto c = faulty(Mistake::constant_gradient);
  EXPECT_TRUE(none(check_gradients(c))) << "the first derivatives are right";
  EXPECT_TRUE(complains(check_second_derivatives(c), {"second derivative by operand 1", "instead of"}));
}

TEST(Suite, FindsACurvatureThatIsNotThere) {
  auto c = faulty(Mistake::none);
  c.operands[1].curved = false;
  EXPECT_TRUE(complains(check_second_derivatives(c), {"should be zero"}));
}

}  // namespace
}  // namespace taut::test
