// Average pooling and upsampling on the device, and their adjoints.

#include <taut/cuda/resample2d.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

template <class Op> void compare_with_gradient(const Op& op, const CpuArray& x) {
  const std::string what = std::string(op.name) + " of " + to_string(x.shape());
  compare(
      what, 16, [&](const auto& t) { return eval(op, t); }, x);
  const op::ResampleGradient<Op> gradient{op, {x.shape()[2], x.shape()[3]}};
  compare(
      "gradient of " + what, 8, [&](const auto& t) { return eval(gradient, t); },
      array(op.shape(x.shape()), 2));
}

void compare_all(const CpuArray& x) {
  compare_with_gradient(op::AvgPool2d{.kernel = 2}, x);
  compare_with_gradient(op::AvgPool2d{.kernel = 3, .stride = 1, .padding = 1}, x);
  compare_with_gradient(
      op::AvgPool2d{.kernel = {3, 4}, .stride = 2, .padding = 1, .count_include_pad = false}, x);
  compare_with_gradient(op::AvgPool2d{.kernel = 1, .stride = 3}, x);  // leaves pixels out
  compare_with_gradient(op::AdaptiveAvgPool2d{.size = 1}, x);
  compare_with_gradient(op::AdaptiveAvgPool2d{.size = {3, 2}}, x);
  compare_with_gradient(op::AdaptiveAvgPool2d{.size = {7, 9}}, x);  // larger than the images
  for (const bool bilinear : {false, true}) {
    compare_with_gradient(op::Upsample2d{.scale = 2, .bilinear = bilinear}, x);
    compare_with_gradient(op::Upsample2d{.scale = {1, 3}, .bilinear = bilinear}, x);
  }
}

TEST(CudaResample2d, EqualsTheCpus) {
  for (const auto n : lengths) {
    compare_all(array({n, 1, 4, 5}));
    if (n < 100) compare_all(array({2, n, 5, 4}));
  }
  compare_all(array({2, 64, 6, 7}));
  compare_with_gradient(op::AdaptiveAvgPool2d{.size = 1}, array({2, 16, 33, 31}));
}

TEST(CudaResample2d, PassesNanAndInfinitiesOnAsTheCpuDoes) {
  for (const float special : specials)
    for (const std::int64_t at : {0, 13, 79}) compare_all(array_with({1, 4, 4, 5}, at, special));
}

}  // namespace
}  // namespace taut::test
