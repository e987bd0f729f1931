#pragma once
// The suite that every operator goes through. A test file lists its operators as cases and instantiates
// `OperatorSuite` with them; suite.cpp holds the checks and is compiled once. The checks return complaints
// instead of failing, so that suite_test.cpp can show that they find planted bugs.

#include <gtest/gtest.h>
#include <taut/core/error.hpp>

#include <string>
#include <vector>

#include "case.hpp"

namespace taut::test {

/// The message of the error of type E that f throws, or "no error".
template <class E = Error, class F> std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// What is wrong, one sentence an item; empty if nothing is.
using Complaints = std::vector<std::string>;

/// All that can be wrong with an operator's results: values against the oracle, on unique and on shared
/// operands, by every engine and on one and two threads; the operands afterwards; shapes; errors.
Complaints check_values(const Case& c);

/// All that can be wrong with an operator's first derivatives: against finite differences of the oracle, in
/// float and in double, for every choice of tracked operands; on CUDA against the CPU's, in float and in
/// bfloat16.
Complaints check_gradients(const Case& c);

/// All that can be wrong with an operator's second derivatives, by `Grad<Grad<T>>`, once its first ones are
/// right.
Complaints check_second_derivatives(const Case& c);

/// The complaints as a test's result; of many, the first few.
testing::AssertionResult none(const Complaints& complaints);

/// Runs the three checks on each case that a test file instantiates it with.
class OperatorSuite : public testing::TestWithParam<Case> {};

inline std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

}  // namespace taut::test
