// Max pooling: that after the stem of ResNet-18 for large images on images of 32 x 32 at batch 128, and
// windows of 2 x 2 that do not overlap; forward, and the gradient, which finds the largest elements again.
// `GB/s` counts each operand and the result once; `limit` is what a triad over as many bytes reaches, and
// `of_peak` the share of it.

#include <taut/taut.hpp>

#include <algorithm>
#include <string>

#include "operands.hpp"
#include "report.hpp"

using namespace taut;

namespace {

struct Case {
  const char* name;
  Shape images;
  op::MaxPool2d pool;
};

const Case cases[] = {
    {"stem/k3s2/128x64x16x16", {128, 64, 16, 16}, {.kernel = 3, .stride = 2, .padding = 1}},
    {"k2s2/128x64x32x32", {128, 64, 32, 32}, {.kernel = 2}},
    {"k2s2/64x6x24x24", {64, 6, 24, 24}, {.kernel = 2}},
};

/// The largest element of the window whose result is the last one.
float last_of_plain(const Case& c, const CpuArray& x, const Shape& y) {
  const Shape& s = c.images;
  const float* const image = x.data() + (s[0] * s[1] - 1) * s[2] * s[3];
  const auto i = (y[2] - 1) * c.pool.steps().h - c.pool.padding.h,
             j = (y[3] - 1) * c.pool.steps().w - c.pool.padding.w;
  float largest = -1e30f;
  for (auto k = std::max<std::int64_t>(i, 0); k < std::min(i + c.pool.kernel.h, s[2]); ++k)
    for (auto l = std::max<std::int64_t>(j, 0); l < std::min(j + c.pool.kernel.w, s[3]); ++l)
      largest = std::max(largest, image[k * s[3] + l]);
  return largest;
}

void forward(benchmark::State& state, const Case& c) {
  Rng rng(1);
  const CpuArray x = bench::images_of_conv2d(c.images, rng);
  const CpuArray y = max_pool2d(x, c.pool);
  bench::measure(state,
                 bench::moving(static_cast<double>(x.shape().size()), static_cast<double>(y.shape().size())),
                 [&] { benchmark::DoNotOptimize(max_pool2d(x, c.pool)); });
  const CpuArray last = max_pool2d(x, c.pool);
  bench::check(state, bench::varied(last.span()) && last.span().back() == last_of_plain(c, x, y.shape()),
               "the result is not the largest element");
}

void gradient(benchmark::State& state, const Case& c) {
  Rng rng(1);
  const CpuArray x = bench::images_of_conv2d(c.images, rng);
  const CpuArray g = bench::images_of_conv2d(c.pool.shape(c.images), rng);
  const op::MaxPool2dGradient op{c.pool};
  const double n = static_cast<double>(x.shape().size());
  bench::measure(state, bench::moving(n + static_cast<double>(g.shape().size()), n),
                 [&] { benchmark::DoNotOptimize(eval(op, g, x)); });
  const CpuArray dx = eval(op, g, x);
  bench::check(state,
               bench::varied(dx.span()) &&
                   bench::near(static_cast<double>(sum(dx).item()), static_cast<double>(sum(g).item()), 1e-2),
               "the gradient's sum has changed");
}

const bool registered = [] {
  for (const Case& c : cases) {
    bench::add(std::string(c.name) + "/forward", [&c](benchmark::State& state) { forward(state, c); });
    bench::add(std::string(c.name) + "/gradient", [&c](benchmark::State& state) { gradient(state, c); });
  }
  return true;
}();

}  // namespace
