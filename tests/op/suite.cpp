#include "suite.hpp"

#include <algorithm>
#include <cstdlib>

#include "check_second.hpp"
#include "check_values.hpp"

namespace taut::test {

namespace {

/// Runs a check for each list of shapes; what it throws is a complaint as well.
template <class Check>
void for_each_shapes(const Case& c, const std::vector<Shapes>& all, Complaints& complaints,
                     const Check& check) {
  for (const auto& shapes : all) try {
      check(shapes);
    } catch (const std::exception& error) {
      complaints.push_back(c.name + " " + describe(shapes) + " throws: " + error.what());
    }
}

/// How many complaints a failing test shows; all of them if the environment has TAUT_ALL_COMPLAINTS.
std::size_t most_shown() { return std::getenv("TAUT_ALL_COMPLAINTS") ? std::size_t(-1) : 12; }

}  // namespace

Complaints check_values(const Case& c) {
  Complaints complaints;
  for_each_shapes(c, c.all_shapes(), complaints, [&](const Shapes& shapes) {
#if TAUT_TEST_CUDA
    check_values(c, c.call.cuda, shapes, complaints);
    check_values(c, c.call.cuda_half, shapes, complaints);
#else
    check_values(c, c.call.single, shapes, complaints);
    check_values(c, c.call.plain, shapes, complaints);
    check_shape(c, shapes, complaints);
#endif
  });
  for (const auto& shapes : c.rejected) check_rejected(c, shapes, complaints);
  return complaints;
}

Complaints check_gradients(const Case& c) {
  Complaints complaints;
  if (!c.has_gradient) return complaints;
  for_each_shapes(c, c.shapes, complaints,
                  [&](const Shapes& shapes) { check_gradients(c, shapes, complaints); });
  return complaints;
}

Complaints check_second_derivatives(const Case& c) {
  Complaints complaints;
  if (!c.has_gradient) return complaints;
  for_each_shapes(c, c.shapes, complaints,
                  [&](const Shapes& shapes) { check_second_derivatives(c, shapes, complaints); });
  return complaints;
}

testing::AssertionResult none(const Complaints& complaints) {
  if (complaints.empty()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure() << complaints.size() << " complaints:";
  for (std::size_t i = 0; i < std::min<std::size_t>(complaints.size(), most_shown()); ++i)
    failure << "\n  " << complaints[i];
  return failure;
}

TEST_P(OperatorSuite, ComputesWhatTheOracleDoes) { EXPECT_TRUE(none(check_values(GetParam()))); }

TEST_P(OperatorSuite, HasTheGradientsOfFiniteDifferences) { EXPECT_TRUE(none(check_gradients(GetParam()))); }

TEST_P(OperatorSuite, HasTheSecondDerivativesOfFiniteDifferences) {
  EXPECT_TRUE(none(check_second_derivatives(GetParam())));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OperatorSuite);

}  // namespace taut::test
