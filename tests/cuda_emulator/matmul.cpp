// Matrix products of the emulated device, by the CPU's portable kernel.

#include "taut/cpu/gemm_portable.hpp"

#include <algorithm>
#include <vector>

#include "emulator.hpp"
#include "taut/core/bfloat16.hpp"
#include "taut/cuda/matmul_launch.hpp"
#include "taut/op/unary.hpp"

namespace taut::cuda {

namespace {

/// How many elements an operand has: its last item begins after batch - 1 strides.
std::int64_t size_of(const Product& product, std::int64_t matrix, std::int64_t stride) {
  return matrix + (product.batch - 1) * stride;
}

std::vector<float> floats(const bfloat16* from, std::int64_t count) { return {from, from + count}; }

void multiply(const Product& product, const float* a, const float* b, const float* bias, float* c) {
  const cpu::Gemm gemm{.batch = product.batch,
                       .m = product.m,
                       .n = product.n,
                       .k = product.k,
                       .transpose_a = product.transpose_a,
                       .transpose_b = product.transpose_b,
                       .stride_a = product.stride_a,
                       .stride_b = product.stride_b};
  cpu::gemm_portable(gemm, a, b, bias, c);
  const auto apply = [&](const auto& f) {
    std::transform(c, c + product.batch * product.m * product.n, c, f);
  };
  if (product.activation == Activation::relu) apply(op::Relu{});
  if (product.activation == Activation::gelu_tanh) apply(op::GeluTanh{});
}

void multiply(const Product& product, const bfloat16* a, const bfloat16* b, const bfloat16* bias,
              bfloat16* c) {
  const auto left = floats(a, size_of(product, product.m * product.k, product.stride_a));
  const auto right = floats(b, size_of(product, product.k * product.n, product.stride_b));
  const auto added = bias ? floats(bias, product.n) : std::vector<float>();
  std::vector<float> result(static_cast<std::size_t>(product.batch * product.m * product.n));
  multiply(product, left.data(), right.data(), bias ? added.data() : nullptr, result.data());
  std::transform(result.begin(), result.end(), c, [](float value) { return bfloat16(value); });
}

}  // namespace

template <class E>
bool launch_matmul(const Product& product, const E* a, const E* b, const E* bias, E* c, Stream stream) {
  // As on a device, there are products without a bias or a function.
  if (bias != nullptr && product.m == 1) return false;
  if (product.activation != Activation::none && product.m % 2 == 0) return false;
  emulator::submit(stream, [=] { multiply(product, a, b, bias, c); });
  return true;
}

template bool launch_matmul(const Product&, const float*, const float*, const float*, float*, Stream);
template bool launch_matmul(const Product&, const bfloat16*, const bfloat16*, const bfloat16*, bfloat16*,
                            Stream);

}  // namespace taut::cuda
