// Convolutions: the distinct ones of ResNet-18 on images of 32 x 32 at batch 128, with a stem of 3 x 3
// (`cifar`) and with that for large images (`imagenet`), and of ResNet-20 at batch 32; forward, the gradient
// by the images (but the first layer's, which nobody wants) and that by the kernels. `GFLOP/s` counts the
// multiplications and additions of the definition, of which places that only meet padding are part; `limit`
// is the peak of fused multiply-adds, or less where the operands come more slowly. So `of_peak` is above 1
// where an algorithm does with fewer operations: Winograd's, for 3 x 3 at stride 1, or leaving out the
// padding of small images. TAUT_CONV_ALGORITHM=direct rules out the former. Operands are dense and are kept
// in the layout that the kernels want from the first call on, as they are within a network.

#include <taut/taut.hpp>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "report.hpp"

using namespace taut;

namespace {

struct Layer {
  std::int64_t channels, out, size, kernel, stride = 1;
};

struct Network {
  const char* name;
  std::int64_t batch;
  std::vector<Layer> layers;
};

/// The distinct layers of a residual network: its stem, and in each stage a convolution of 3 x 3 between its
/// channels, in all but the first after those that halve the image, of which the first stage's has `size`
/// pixels a side.
std::vector<Layer> layers_of(const Layer& stem, std::int64_t size, const std::vector<std::int64_t>& widths) {
  std::vector<Layer> layers{stem};
  std::int64_t before = widths.front();
  for (const auto width : widths) {
    if (width != before) {
      layers.push_back({before, width, size, 3, 2});
      layers.push_back({before, width, size, 1, 2});
      size /= 2;
    }
    layers.push_back({width, width, size, 3});
    before = width;
  }
  return layers;
}

const Network networks[] = {{"cifar", 128, layers_of({3, 64, 32, 3}, 32, {64, 128, 256, 512})},
                            {"imagenet", 128, layers_of({3, 64, 32, 7, 2}, 8, {64, 128, 256, 512})},
                            {"resnet20", 32, layers_of({3, 16, 32, 3}, 32, {16, 32, 64})}};

/// A convolution's images, kernels, and the gradient by its result.
struct Operands {
  op::Conv2d conv;
  CpuArray x, w, g;

  Operands(const Layer& layer, std::int64_t batch)
      : conv{.stride = layer.stride, .padding = layer.kernel / 2} {
    Rng rng(1);
    x = CpuArray::normal({batch, layer.channels, layer.size, layer.size}, 0, 1, rng);
    w = CpuArray::normal({layer.out, layer.channels, layer.kernel, layer.kernel}, 0, 1, rng);
    g = CpuArray::normal(conv.shape(x.shape(), w.shape()), 0, 1, rng);
  }

  CpuArray forward() const { return conv2d(x, w, conv); }
  CpuArray data() const { return eval(op::Conv2dDataGradient{conv, {x.shape()[2], x.shape()[3]}}, g, w); }
  CpuArray weight() const { return eval(op::Conv2dWeightGradient{conv, {w.shape()[2], w.shape()[3]}}, g, x); }
};

double inner_product(const CpuArray& a, const CpuArray& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.shape().size(); ++i)
    sum += static_cast<double>(a.data()[i]) * static_cast<double>(b.data()[i]);
  return sum;
}

/// The last element of the result, by the definition.
double last_element(const Operands& o) {
  const Shape &x = o.x.shape(), &w = o.w.shape(), &y = o.g.shape();
  double sum = 0;
  for (std::int64_t c = 0; c < w[1]; ++c)
    for (std::int64_t k = 0; k < w[2]; ++k)
      for (std::int64_t l = 0; l < w[3]; ++l) {
        const auto i = (y[2] - 1) * o.conv.stride.h + k - o.conv.padding.h,
                   j = (y[3] - 1) * o.conv.stride.w + l - o.conv.padding.w;
        if (i < 0 || i >= x[2] || j < 0 || j >= x[3]) continue;
        const auto from = (((x[0] - 1) * x[1] + c) * x[2] + i) * x[3] + j,
                   kernel = (((w[0] - 1) * w[1] + c) * w[2] + k) * w[3] + l;
        sum += static_cast<double>(o.x.data()[from]) * static_cast<double>(o.w.data()[kernel]);
      }
  return sum;
}

enum class Kind { forward, data, weight };

void convolve(benchmark::State& state, const Layer& layer, std::int64_t batch, Kind kind) {
  const Operands o(layer, batch);
  const auto call = [&] {
    return kind == Kind::forward ? o.forward() : kind == Kind::data ? o.data() : o.weight();
  };
  const auto bytes = [](const CpuArray& x) { return 4 * static_cast<double>(x.shape().size()); };
  const CpuArray& result = kind == Kind::forward ? o.g : kind == Kind::data ? o.x : o.w;
  const double all = bytes(o.x) + bytes(o.w) + bytes(o.g);
  bench::measure(state,
                 {.flops = static_cast<double>(o.conv.flops(o.x.shape(), o.w.shape())),
                  .read = all - bytes(result),
                  .written = bytes(result)},
                 [&] { benchmark::DoNotOptimize(call()); });
  // One element by the definition, and the gradients by ⟨y, g⟩ = ⟨x, data⟩ = ⟨w, weight⟩.
  const CpuArray y = o.forward(), last = call();
  const double deviation = std::sqrt(static_cast<double>(o.w.shape().size() / o.w.shape()[0]));
  const bool right = kind == Kind::forward
                         ? std::abs(static_cast<double>(y.span().back()) - last_element(o)) < 1e-3 * deviation
                         : std::abs(inner_product(last, result) - inner_product(y, o.g)) <
                               1e-2 * deviation * std::sqrt(static_cast<double>(y.shape().size()));
  bench::check(state, right && bench::varied(last.span()), "the result is not the convolution's");
}

const bool registered = [] {
  for (const Network& network : networks)
    for (const Layer& layer : network.layers)
      for (const auto& [kind, name] : {std::pair(Kind::forward, "forward"), std::pair(Kind::data, "data"),
                                       std::pair(Kind::weight, "weight")}) {
        if (kind == Kind::data && layer.channels == 3) continue;
        const auto text = [](std::int64_t number) { return std::to_string(number); };
        bench::add(std::string(network.name) + "/" + text(layer.channels) + "-" + text(layer.out) + "/" +
                       text(layer.size) + "x" + text(layer.size) + "/k" + text(layer.kernel) + "s" +
                       text(layer.stride) + "/" + name,
                   [&network, &layer, kind = kind](benchmark::State& state) {
                     convolve(state, layer, network.batch, kind);
                   });
      }
  return true;
}();

}  // namespace
