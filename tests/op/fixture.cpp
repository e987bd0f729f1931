#include "fixture.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "check.hpp"

namespace taut::test {

namespace {

const Shape no_gradient{-1};

/// "[2, 3] 0x1p-3 inf …"
Reference parse_tensor(const std::string& text) {
  Reference x;
  const auto end = text.find(']');
  std::istringstream extents(text.substr(text.find('[') + 1, end - text.find('[') - 1));
  for (std::string extent; std::getline(extents, extent, ',');) x.shape.push_back(std::stoll(extent));
  std::istringstream elements(text.substr(end + 1));
  for (std::string element; elements >> element;) x.values.push_back(std::strtod(element.c_str(), nullptr));
  if (x.values.size() != element_count(x.shape)) throw Error("fixture: wrong number of elements: " + text);
  return x;
}

void parse_line(const std::string& line, Fixture& fixture) {
  const auto space = line.find(' ');
  const std::string key = line.substr(0, space), rest = space == line.npos ? "" : line.substr(space + 1);
  if (key == "case") {
    fixture.name = rest.substr(0, rest.find(' '));
    fixture.single = rest.substr(rest.find(' ') + 1) == "float";
  } else if (key == "in") {
    fixture.operands.push_back(parse_tensor(rest));
  } else if (key == "labels") {
    for (const double label : parse_tensor(rest).values)
      fixture.labels.push_back(static_cast<std::int64_t>(label));
  } else if (key == "out") {
    fixture.out = parse_tensor(rest);
    fixture.cotangent = fixture.out;
    for (double& value : fixture.cotangent.values) value = 1;
  } else if (key == "cotangent") {
    fixture.cotangent = parse_tensor(rest);
  } else if (key == "grad" || key == "none") {
    fixture.has_gradient = true;
    fixture.gradients.push_back(key == "none" ? Reference{no_gradient, {}} : parse_tensor(rest));
  } else {
    throw Error("fixture: unknown line: " + line);
  }
}

/// The operands' elements that belong to element `i` of a tensor of this size: all of them for elementwise
/// operators, the first operand's where only that has as many.
std::vector<double> elements_at(const Fixture& fixture, std::size_t size, std::size_t i) {
  std::vector<double> x;
  for (const auto& operand : fixture.operands)
    if (operand.values.size() == size) x.push_back(operand.values[i]);
  return x;
}

/// Whether a value is what PyTorch or, where the two differ, Taut should give.
bool is_right(const Fixture& fixture, const Difference::Point& at, double allowed,
              const std::vector<Difference>& differences) {
  for (const auto& difference : differences) {
    if (difference.name != fixture.name || !difference.covers(at)) continue;
    if (difference.accepts(at)) return true;
    if (difference.on_purpose) return false;
  }
  return agree(at.got, at.expected, allowed);
}

/// Complains of each element that is off, with the operands there.
template <class E>
void compare_points(const std::string& what, const Fixture& fixture, int operand, const Reference& got,
                    const Reference& expected, const Tolerance& tolerance,
                    const std::vector<Difference>& differences, Complaints& complaints) {
  if (got.shape != expected.shape) {
    complaints.push_back(what + ": the shape is " + to_string(got.shape) + " instead of " +
                         to_string(expected.shape));
    return;
  }
  const double ulps = (operand < 0 ? 1 : 2) * tolerance.ulps;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double size = std::max(std::abs(expected.values[i]), tolerance.floor);
    const double allowed = ulps * std::max(size * static_cast<double>(std::numeric_limits<E>::epsilon()),
                                           static_cast<double>(std::numeric_limits<E>::denorm_min()));
    const Difference::Point at{operand, elements_at(fixture, got.values.size(), i), got.values[i],
                               expected.values[i]};
    if (is_right(fixture, at, allowed, differences)) continue;
    std::string x;
    for (const double value : at.x) x += (x.empty() ? "" : ", ") + number(value);
    complaints.push_back(what + " at (" + x + "), element " + std::to_string(i) + ", is " + number(at.got) +
                         " instead of " + number(at.expected));
  }
}

template <class T>
void check_fixture(const Fixture& fixture, const Program<T>& call, const Program<Grad<T>>& grad_call,
                   const Tolerance& tolerance, const std::vector<Difference>& differences,
                   Complaints& complaints) {
  const std::string name = fixture.name + " of " + Leaf<T>::name;
  const Tolerance allowed{Leaf<T>::tolerance * tolerance.ulps, tolerance.floor};
  const auto check = [&](const std::string& what, int operand, const T& got, const Reference& expected) {
    compare_points<typename T::Element>(name + what, fixture, operand, to_reference(got), expected, allowed,
                                        differences, complaints);
  };
  check("", -1, call.by_reference(to_tensors<T>(fixture.operands)), fixture.out);
  if (!fixture.has_gradient) return;
  std::vector<Grad<T>> leaves;
  for (const auto& x : to_tensors<T>(fixture.operands)) leaves.push_back(Grad<T>(x).track());
  Tape<T> tape;
  const Grad<T> y = grad_call.by_reference(leaves);
  check(" for Grad", -1, y.value(), fixture.out);
  tape.backward(y, to_tensor<T>(fixture.cotangent));
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const Reference& expected = fixture.gradients.at(k);
    const std::string by = ", the gradient by operand " + std::to_string(k);
    if (leaves[k].has_grad() != (expected.shape != no_gradient))
      complaints.push_back(name + by + (leaves[k].has_grad() ? " should not be there" : " is missing"));
    else if (leaves[k].has_grad())
      check(by, static_cast<int>(k), leaves[k].grad(), expected);
  }
}

}  // namespace

std::vector<Fixture> read_fixtures(const std::string& file) {
  const std::string here = __FILE__;
  const std::string path = here.substr(0, here.rfind('/') + 1) + "../fixtures/op/" + file + ".txt";
  std::ifstream in(path);
  if (!in) throw Error("fixture: cannot read " + path);
  std::vector<Fixture> fixtures;
  bool open = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      open = false;
      continue;
    }
    if (!open) fixtures.emplace_back();
    open = true;
    parse_line(line, fixtures.back());
  }
  return fixtures;
}

Complaints check_fixture(const Fixture& fixture, const Programs& call, const Tolerance& tolerance,
                         const std::vector<Difference>& differences) {
  Complaints complaints;
#if TAUT_TEST_CUDA
  if (fixture.single) check_fixture(fixture, call.cuda, call.grad_cuda, tolerance, differences, complaints);
#else
  if (fixture.single)
    check_fixture(fixture, call.single, call.grad_single, tolerance, differences, complaints);
  else
    check_fixture(fixture, call.plain, call.grad, tolerance, differences, complaints);
#endif
  return complaints;
}

Complaints check_fixtures(const std::string& file, const std::map<std::string, Programs>& programs,
                          const Tolerance& tolerance, const std::vector<Difference>& differences) {
  Complaints complaints;
  for (const auto& fixture : read_fixtures(file)) {
    const auto more = check_fixture(fixture, programs.at(fixture.name), tolerance, differences);
    complaints.insert(complaints.end(), more.begin(), more.end());
  }
  return complaints;
}

std::map<std::string, Programs> programs_of(const std::vector<Case>& cases) {
  std::map<std::string, Programs> programs;
  for (const auto& c : cases) programs[c.name] = c.call;
  return programs;
}

}  // namespace taut::test
