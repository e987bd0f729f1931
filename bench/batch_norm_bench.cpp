// Batch normalisation in training, of the results of residual networks' convolutions: the kernels one by one,
// and what a network calls. `forward` is normalisation with the ReLU after it, `forward/add_relu` with the
// residual that is added before that; `backward` are the gradients by images, weight and bias. `GB/s` counts
// each operand once for each of two passes (the statistics, or the sums of the gradient, before the rest) and
// the result once; `limit` is what a stream of as many bytes reaches. A residual's gradient, which takes the
// ReLU's mask from the result, is a third pass.

#include <taut/taut.hpp>

#include <cmath>
#include <string>
#include <utility>

#include "operands.hpp"
#include "report.hpp"

using namespace taut;

namespace {

struct Operands {
  CpuArray x, residual, g, weight, bias, statistics, sums, out;

  explicit Operands(const Shape& shape) {
    Rng rng(1);
    x = bench::images_of_conv2d(shape, rng);
    residual = bench::images_of_conv2d(shape, rng);
    g = bench::images_of_conv2d(shape, rng);
    weight = CpuArray::normal({shape[1]}, 1, 0.1f, rng);
    bias = CpuArray::normal({shape[1]}, 0, 0.1f, rng);
    statistics = batch_statistics(x);
    sums = eval(op::BatchNormSums{relu}, g, x, weight, bias, statistics);
    out = batch_norm_add_relu(x, weight, bias, residual);
  }

  static constexpr op::BatchNormOptions relu{.relu = true}, linear{};

  CpuArray gradient_sums(const CpuArray& by_result, const op::BatchNormOptions& options) const {
    return eval(op::BatchNormSums{options}, by_result, x, weight, bias, statistics);
  }
  CpuArray gradient(const CpuArray& by_result, const CpuArray& by_parameters,
                    const op::BatchNormOptions& options) const {
    return eval(op::BatchNormGradient{options}, by_result, x, weight, bias, statistics, by_parameters);
  }
  CpuArray backward(const CpuArray& by_result, const op::BatchNormOptions& options) const {
    return gradient(by_result, gradient_sums(by_result, options), options);
  }
};

/// A kernel, or several: how often it reads and writes an array of the images' size, and how many there are.
struct Case {
  const char* name;
  int read, written, arrays;
  CpuArray (*call)(const Operands&);
};

const Case cases[] = {
    {"statistics", 1, 0, 1, [](const Operands& o) { return batch_statistics(o.x); }},
    {"normalize", 1, 1, 2,
     [](const Operands& o) {
       return eval(op::BatchNorm{Operands::relu}, o.x, o.weight, o.bias, o.statistics);
     }},
    {"sums", 2, 0, 2, [](const Operands& o) { return o.gradient_sums(o.g, Operands::relu); }},
    {"gradient", 2, 1, 3, [](const Operands& o) { return o.gradient(o.g, o.sums, Operands::relu); }},
    {"forward", 2, 1, 2, [](const Operands& o) { return batch_norm(o.x, o.weight, o.bias, Operands::relu); }},
    {"forward/add_relu", 3, 1, 3,
     [](const Operands& o) { return batch_norm_add_relu(o.x, o.weight, o.bias, o.residual); }},
    {"backward", 4, 1, 3, [](const Operands& o) { return o.backward(o.g, Operands::relu); }},
    {"backward/add_relu", 6, 2, 5, [](const Operands& o) {
       return o.backward(eval(op::PartialFromOutput<op::Relu>{}, o.g, o.out), Operands::linear);
     }}};

/// Whether the mean of a channel's results is the bias and their variance the weight's square, and whether
/// its gradients add up to nothing, as that of a shifted batch must.
bool right(const Operands& o) {
  const CpuArray y = batch_norm(o.x, o.weight, o.bias), moments = batch_statistics(y);
  const CpuArray total = sum(o.backward(o.g, Operands::relu), {0, 2, 3});
  const auto c = o.weight.shape()[0];
  const double count = static_cast<double>(y.shape().size() / c);
  for (std::int64_t i = 0; i < c; ++i) {
    const double w = static_cast<double>(o.weight.data()[i]);
    if (!bench::near(static_cast<double>(moments.data()[i]), static_cast<double>(o.bias.data()[i]), 1e-4) ||
        !bench::near(static_cast<double>(moments.data()[c + i]), w * w, 1e-3) ||
        std::abs(static_cast<double>(total.data()[i])) > 1e-3 * std::sqrt(count))
      return false;
  }
  return true;
}

const bool registered = [] {
  const std::pair<std::string, Shape> images[] = {{"128x64x32x32", {128, 64, 32, 32}},
                                                  {"128x128x16x16", {128, 128, 16, 16}},
                                                  {"128x512x4x4", {128, 512, 4, 4}},
                                                  {"128x64x8x8", {128, 64, 8, 8}},
                                                  {"32x16x32x32", {32, 16, 32, 32}}};
  for (const auto& [name, shape] : images)
    for (const Case& c : cases)
      bench::add(name + "/" + c.name, [shape = shape, &c](benchmark::State& state) {
        const Operands o(shape);
        const double bytes = 4 * static_cast<double>(shape.size());
        bench::measure(state,
                       {.read = c.read * bytes, .written = c.written * bytes, .footprint = c.arrays * bytes},
                       [&] { benchmark::DoNotOptimize(c.call(o)); });
        bench::check(state, bench::varied(c.call(o).span()) && right(o), "the result is not normalised");
      });
  return true;
}();

}  // namespace
