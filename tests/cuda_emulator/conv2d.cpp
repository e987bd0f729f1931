// Convolutions of the emulated device, by the CPU's portable kernels on row-major copies.

#include "taut/cpu/conv2d_portable.hpp"

#include <algorithm>
#include <vector>

#include "emulator.hpp"
#include "taut/core/bfloat16.hpp"
#include "taut/cuda/conv2d_launch.hpp"

namespace taut::cuda {

namespace {

using Floats = std::vector<float>;

/// Elements with their channels last, as floats in row-major order.
template <class E> Floats dense(const Shape& shape, const E* from) {
  const Floats values(from, from + shape.size());
  Floats ordered(values.size());
  cpu::convert_layout(shape, values.data(), cpu::Layout::channels_last, ordered.data(), cpu::Layout::dense);
  return ordered;
}

template <class E> void channels_last(const Shape& shape, const Floats& from, E* to) {
  Floats ordered(from.size());
  cpu::convert_layout(shape, from.data(), cpu::Layout::dense, ordered.data(), cpu::Layout::channels_last);
  std::transform(ordered.begin(), ordered.end(), to, [](float value) { return E(value); });
}

Floats zeros(const Shape& shape) { return Floats(static_cast<std::size_t>(shape.size())); }

}  // namespace

template <class E>
bool launch_conv2d(const ConvGeometry& g, const E* x, const E* kernels, const ConvEnding<E>& ending, E* y,
                   Stream stream) {
  // As on a device, there are convolutions without the one ending or the other.
  if (g.groups > 1 && !ending.empty()) return false;
  if (g.stride.h > 1 && ending.relu) return false;
  emulator::submit(stream, [=] {
    const Floats bias = ending.bias ? Floats(ending.bias, ending.bias + g.out) : Floats();
    Floats result = zeros(g.y());
    cpu::conv2d_portable(g, dense(g.x(), x).data(), dense(g.kernels(), kernels).data(),
                         ending.bias ? bias.data() : nullptr, result.data());
    const Floats residual = ending.residual ? dense(g.y(), ending.residual) : zeros(g.y());
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] += residual[i];
      if (ending.relu) result[i] = op::Relu{}(result[i]);
    }
    channels_last(g.y(), result, y);
  });
  return true;
}

template <class E>
void launch_conv2d_data_gradient(const ConvGeometry& g, const E* dy, const E* kernels, E* dx, Stream stream) {
  emulator::submit(stream, [=] {
    Floats result = zeros(g.x());
    cpu::conv2d_data_gradient_portable(g, dense(g.y(), dy).data(), dense(g.kernels(), kernels).data(),
                                       result.data());
    channels_last(g.x(), result, dx);
  });
}

template <class E>
void launch_conv2d_weight_gradient(const ConvGeometry& g, const E* dy, const E* x, E* dw, Stream stream) {
  emulator::submit(stream, [=] {
    Floats result = zeros(g.kernels());
    cpu::conv2d_weight_gradient_portable(g, dense(g.y(), dy).data(), dense(g.x(), x).data(), result.data());
    channels_last(g.kernels(), result, dw);
  });
}

template bool launch_conv2d(const ConvGeometry&, const float*, const float*, const ConvEnding<float>&, float*,
                            Stream);
template bool launch_conv2d(const ConvGeometry&, const bfloat16*, const bfloat16*,
                            const ConvEnding<bfloat16>&, bfloat16*, Stream);
template void launch_conv2d_data_gradient(const ConvGeometry&, const float*, const float*, float*, Stream);
template void launch_conv2d_data_gradient(const ConvGeometry&, const bfloat16*, const bfloat16*, bfloat16*,
                                          Stream);
template void launch_conv2d_weight_gradient(const ConvGeometry&, const float*, const float*, float*, Stream);
template void launch_conv2d_weight_gradient(const ConvGeometry&, const bfloat16*, const bfloat16*, bfloat16*,
                                            Stream);

}  // namespace taut::cuda
