// Reductions of an array to one element, and over its first, middle and last axis: sum, mean, max and argmax,
// of operands in the first cache and of ones larger than the second; and the sum over all axes but the
// channels' of images, which is a bias' gradient. `GB/s` counts the operand and the result once; `limit` is
// what a loop reaches that adds up as many bytes, and `of_peak` the share of it.

#include <taut/taut.hpp>

#include <string>
#include <vector>

#include "operands.hpp"
#include "report.hpp"

using namespace taut;

namespace {

/// An array [outer, n, inner] that is reduced over n.
struct Case {
  const char* name;
  std::int64_t outer, n, inner;

  Shape shape() const { return {outer, n, inner}; }
};

const Case cases[] = {
    {"all/8k", 1, 1 << 13, 1},   {"first/8k", 1, 64, 128},         {"middle/8k", 8, 32, 32},
    {"last/8k", 64, 128, 1},     {"all/4M", 1, 1 << 22, 1},        {"first/4M", 1, 64, 1 << 16},
    {"middle/4M", 64, 256, 256}, {"last/4M", 1 << 12, 1 << 10, 1}, {"last_of_10/40k", 1 << 12, 10, 1}};

bench::Work work_of(const Case& c, double result_bytes) {
  const double results = static_cast<double>(c.outer * c.inner);
  return {.read = 4 * results * static_cast<double>(c.n), .written = result_bytes * results};
}

/// For each result, fold(elements) in double.
template <class Fold> std::vector<double> reference(const Case& c, const CpuArray& x, const Fold& fold) {
  std::vector<double> results, elements(static_cast<std::size_t>(c.n));
  for (std::int64_t o = 0; o < c.outer; ++o)
    for (std::int64_t i = 0; i < c.inner; ++i) {
      for (std::int64_t k = 0; k < c.n; ++k)
        elements[static_cast<std::size_t>(k)] = static_cast<double>(x.data()[(o * c.n + k) * c.inner + i]);
      results.push_back(fold(elements));
    }
  return results;
}

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

/// Adds a reduction, and the same by `fold`, for all cases.
template <class Kernel, class Fold>
void add(const std::string& name, double result_bytes, const Kernel& kernel, const Fold& fold) {
  for (const Case& c : cases)
    bench::add(name + "/" + c.name, [=, &c](benchmark::State& state) {
      Rng rng(1);
      const auto x = CpuArray::normal(c.shape(), 0, 1, rng);
      bench::measure(state, work_of(c, result_bytes), [&] { benchmark::DoNotOptimize(kernel(x)); });
      const auto result = kernel(x);
      bench::check(
          state,
          std::ranges::equal(result.span(), reference(c, x, fold),
                             [](auto a, double b) { return bench::near(static_cast<double>(a), b, 1e-4); }),
          "the result is not that of a plain loop");
    });
}

void sum_to_channels(benchmark::State& state, const CpuArray& x) {
  bench::measure(state, bench::moving(static_cast<double>(x.shape().size()), 64), [&] {
    benchmark::DoNotOptimize(sum(x, {0, 2, 3}));
  });
  const auto by_channel = sum(x, {0, 2, 3});
  const std::vector<double> elements(x.span().begin(), x.span().end());
  const std::vector<double> sums(by_channel.span().begin(), by_channel.span().end());
  bench::check(state, bench::varied(by_channel.span()) && bench::near(total(sums), total(elements), 1e-2),
               "the sums do not add up to the whole");
}

const bool registered = [] {
  using A = const CpuArray&;
  add(
      "sum", 4, [](A x) { return sum(x, {1}); }, total);
  add(
      "mean", 4, [](A x) { return mean(x, {1}); },
      [](const auto& values) { return total(values) / static_cast<double>(values.size()); });
  add(
      "max", 4, [](A x) { return max(x, {1}); }, [](const auto& values) { return std::ranges::max(values); });
  add(
      "argmax", 8, [](A x) { return argmax(x, 1); },
      [](const auto& values) {
        return static_cast<double>(std::ranges::max_element(values) - values.begin());
      });
  const Shape images{128, 64, 32, 32};
  bench::add("sum/channels/dense", [images](benchmark::State& state) {
    Rng rng(1);
    sum_to_channels(state, CpuArray::normal(images, 0, 1, rng));
  });
  bench::add("sum/channels/of_conv2d", [images](benchmark::State& state) {
    Rng rng(1);
    sum_to_channels(state, bench::images_of_conv2d(images, rng));
  });
  return true;
}();

}  // namespace
