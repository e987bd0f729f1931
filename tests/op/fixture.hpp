#pragma once
// Edge points with PyTorch's results, from ../fixtures/op (make.py there says how they were made and in which
// format they are kept).

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "suite.hpp"

namespace taut::test {

/// One operator at some points, with what PyTorch gives.
struct Fixture {
  std::string name;
  bool single = false;  ///< the elements are floats, else doubles
  std::vector<Reference> operands;
  std::vector<std::int64_t> labels;
  Reference out;
  bool has_gradient = false;
  Reference cotangent;
  std::vector<Reference> gradients;  ///< with shape {-1} where PyTorch has none
};

/// The records of ../fixtures/op/`file`.txt. Throws `Error` if it cannot be read.
std::vector<Fixture> read_fixtures(const std::string& file);

/// A place where Taut means to differ from PyTorch.
struct Difference {
  std::string name;    ///< of the fixtures
  std::string reason;  ///< for the reader
  /// Whether this is about an element of the result (operand -1) or of an operand's gradient, given the
  /// operands' elements there.
  std::function<bool(int operand, const std::vector<double>& x)> covers;
  double expected;  ///< what Taut gives there instead
};

/// What an operator gives that PyTorch does not, at all points of a file. `program(fixture)` names the
/// operator of a record. Results may be off by `ulps`, gradients by twice that.
Complaints check_fixtures(const std::string& file, const std::function<Programs(const Fixture&)>& program,
                          double ulps, const std::vector<Difference>& differences = {});

/// The same with the programs by name.
Complaints check_fixtures(const std::string& file, const std::map<std::string, Programs>& programs,
                          double ulps, const std::vector<Difference>& differences = {});

/// The programs of cases by their names.
std::map<std::string, Programs> programs_of(const std::vector<Case>& cases);

}  // namespace taut::test
