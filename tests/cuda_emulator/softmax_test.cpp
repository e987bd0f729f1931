// Softmax on the device, along each axis.

#include <taut/cuda/softmax.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

void compare_softmax(const CpuArray& x, int axis) {
  const std::string what = to_string(x.shape()) + " along " + std::to_string(axis);
  compare(
      "softmax of " + what, 8, [axis](const auto& t) { return softmax(t, axis); }, x);
  compare(
      "log_softmax of " + what, 8, [axis](const auto& t) { return log_softmax(t, axis); }, x);
}

TEST(CudaSoftmax, EqualsTheCpusAlongEveryAxis) {
  for (const auto n : lengths) {
    compare_softmax(array({n}), 0);
    compare_softmax(array({3, n}), -1);
    compare_softmax(array({n, 3}), -1);
    compare_softmax(array({n, 3}), 0);
    compare_softmax(array({2, n, 5}), 1);
    compare_softmax(array({2, 3, n}), 1);
  }
  compare_softmax(array({2, 5000}), -1);
}

TEST(CudaSoftmax, PassesNanAndInfinitiesOnAsTheCpuDoes) {
  for (const float special : specials)
    for (const std::int64_t n : {1, 5, 33, 1025})
      for (const std::int64_t at : {std::int64_t{0}, n - 1}) {
        compare_softmax(array_with({n}, at, special), 0);
        compare_softmax(array_with({n, 2}, at, special), 0);
      }
}

}  // namespace
}  // namespace taut::test
