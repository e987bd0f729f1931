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

/// Where Taut does not give what PyTorch does, and why.
struct Difference {
  /// What can be decided by: which operand's gradient it is, or -1 for the result; the operands' elements at
  /// the place; what Taut and PyTorch give there.
  struct Point {
    int operand;
    std::vector<double> x;
    double got, expected;
  };

  std::string name;    ///< of the fixtures
  std::string reason;  ///< for the reader
  std::function<bool(const Point&)> covers, accepts;
  bool on_purpose = true;  ///< false: what PyTorch gives is right and just as welcome
};

/// Accepts one value.
inline std::function<bool(const Difference::Point&)> gives(double value) {
  return [=](const Difference::Point& at) { return at.got == value || (at.got != at.got && value != value); };
}

/// How far results may be off; gradients may be off by twice that.
struct Tolerance {
  double ulps = 4;
  /// Results as large as this may be off by as much as larger ones: for functions whose terms nearly cancel.
  double floor = 0;
};

/// What an operator gives that PyTorch does not, at all points of a record.
Complaints check_fixture(const Fixture& fixture, const Programs& call, const Tolerance& tolerance,
                         const std::vector<Difference>& differences = {});

/// The same for all records of a file, with the programs by name.
Complaints check_fixtures(const std::string& file, const std::map<std::string, Programs>& programs,
                          const Tolerance& tolerance = {}, const std::vector<Difference>& differences = {});

/// The programs of cases by their names.
std::map<std::string, Programs> programs_of(const std::vector<Case>& cases);

}  // namespace taut::test
