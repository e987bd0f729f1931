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

/// Replaces PyTorch's value by Taut's in those places where the two differ on purpose.
void apply_differences(const Fixture& fixture, int operand, Reference& expected,
                       const std::vector<Difference>& differences) {
  for (const auto& difference : differences) {
    if (difference.name != fixture.name) continue;
    for (std::size_t i = 0; i < expected.values.size(); ++i)
      if (difference.covers(operand, elements_at(fixture, expected.values.size(), i)))
        expected.values[i] = difference.expected;
  }
}

/// Complains of each element that is off, with the operands there.
template <class E>
void compare_points(const std::string& what, const Fixture& fixture, const Reference& got,
                    const Reference& expected, double ulps, Complaints& complaints) {
  if (got.shape != expected.shape) {
    complaints.push_back(what + ": the shape is " + to_string(got.shape) + " instead of " +
                         to_string(expected.shape));
    return;
  }
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double size = std::abs(expected.values[i]);
    const double tolerance = ulps * std::max(size * static_cast<double>(std::numeric_limits<E>::epsilon()),
                                             static_cast<double>(std::numeric_limits<E>::denorm_min()));
    if (agree(got.values[i], expected.values[i], tolerance)) continue;
    std::string at;
    for (const double x : elements_at(fixture, got.values.size(), i))
      at += (at.empty() ? "" : ", ") + number(x);
    complaints.push_back(what + " at (" + at + "), element " + std::to_string(i) + ", is " +
                         number(got.values[i]) + " instead of " + number(expected.values[i]));
  }
}

template <class E>
void check_fixture(const Fixture& fixture, const Program<BasicCpuArray<E>>& call,
                   const Program<Grad<BasicCpuArray<E>>>& grad_call, double ulps,
                   const std::vector<Difference>& differences, Complaints& complaints) {
  using T = BasicCpuArray<E>;
  const std::string what = fixture.name + " of " + element_name<E>();
  Reference out = fixture.out;
  apply_differences(fixture, -1, out, differences);
  compare_points<E>(what, fixture, to_reference(call.by_reference(to_arrays<E>(fixture.operands))), out, ulps,
                    complaints);
  if (!fixture.has_gradient) return;
  std::vector<Grad<T>> leaves;
  for (const auto& x : fixture.operands) leaves.push_back(Grad<T>(to_array<E>(x)).track());
  Tape<T> tape;
  const Grad<T> y = grad_call.by_reference(leaves);
  compare_points<E>(what + " for Grad", fixture, to_reference(y.value()), out, ulps, complaints);
  tape.backward(y, to_array<E>(fixture.cotangent));
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    Reference expected = fixture.gradients.at(k);
    const std::string by = what + ", the gradient by operand " + std::to_string(k);
    if (leaves[k].has_grad() != (expected.shape != no_gradient))
      complaints.push_back(by + (leaves[k].has_grad() ? " should not be there" : " is missing"));
    if (!leaves[k].has_grad() || expected.shape == no_gradient) continue;
    apply_differences(fixture, static_cast<int>(k), expected, differences);
    compare_points<E>(by, fixture, to_reference(leaves[k].grad()), expected, 2 * ulps, complaints);
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

Complaints check_fixtures(const std::string& file, const std::function<Programs(const Fixture&)>& program,
                          double ulps, const std::vector<Difference>& differences) {
  Complaints complaints;
  for (const auto& fixture : read_fixtures(file)) {
    const Programs call = program(fixture);
    if (fixture.single)
      check_fixture<float>(fixture, call.single, call.grad_single, ulps, differences, complaints);
    else
      check_fixture<double>(fixture, call.plain, call.grad, ulps, differences, complaints);
  }
  return complaints;
}

Complaints check_fixtures(const std::string& file, const std::map<std::string, Programs>& programs,
                          double ulps, const std::vector<Difference>& differences) {
  return check_fixtures(
      file, [&](const Fixture& fixture) { return programs.at(fixture.name); }, ulps, differences);
}

std::map<std::string, Programs> programs_of(const std::vector<Case>& cases) {
  std::map<std::string, Programs> programs;
  for (const auto& c : cases) programs[c.name] = c.call;
  return programs;
}

}  // namespace taut::test
