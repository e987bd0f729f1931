#pragma once
// Matrix products by oneDNN's matmul primitive. Without TAUT_HAS_ONEDNN this header is empty.

#include "gemm_portable.hpp"
#include "onednn.hpp"

#if TAUT_HAS_ONEDNN

#include <cstddef>
#include <unordered_map>

namespace taut::cpu {

namespace detail {

/// All that a primitive depends on.
struct GemmKey {
  Gemm gemm;
  bool bias = false;
  int threads = 1;

  friend bool operator==(const GemmKey&, const GemmKey&) = default;
};

struct GemmHash {
  std::size_t operator()(const GemmKey& key) const {
    const Gemm& g = key.gemm;
    std::uint64_t hash = static_cast<std::uint64_t>(g.transpose_a + 2 * g.transpose_b + 4 * key.bias);
    for (const std::int64_t x : {g.batch, g.m, g.n, g.k, g.stride_a, g.stride_b, std::int64_t{key.threads}})
      hash = (hash ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
    return hash;
  }
};

/// A matmul primitive and the memory objects that it is called with, whose data change with each call.
class GemmPlan {
 public:
  [[gnu::cold]] GemmPlan(const Gemm& g, bool bias) {
    const std::int64_t a_row = g.transpose_a ? 1 : g.k, a_column = g.transpose_a ? g.m : 1;
    const std::int64_t b_row = g.transpose_b ? 1 : g.n, b_column = g.transpose_b ? g.k : 1;
    // A dimension of one item is broadcast along the batch; its stride then only has to be valid.
    const std::int64_t batch_a = g.stride_a ? g.batch : 1, batch_b = g.stride_b ? g.batch : 1;
    const bool flat = g.batch == 1;
    using D = onednn::Descriptor;
    const D a = flat ? D({g.m, g.k}, {a_row, a_column})
                     : D({batch_a, g.m, g.k}, {g.stride_a ? g.stride_a : g.m * g.k, a_row, a_column});
    const D b = flat ? D({g.k, g.n}, {b_row, b_column})
                     : D({batch_b, g.k, g.n}, {g.stride_b ? g.stride_b : g.k * g.n, b_row, b_column});
    const D c = flat ? D({g.m, g.n}, {g.n, 1}) : D({g.batch, g.m, g.n}, {g.m * g.n, g.n, 1});
    const D row = !bias ? D() : flat ? D({1, g.n}, {g.n, 1}) : D({1, 1, g.n}, {g.n, g.n, 1});
    primitive_ = onednn::make_primitive(onednn::matmul_descriptor(a, b, row, c));
    add(DNNL_ARG_SRC, a);
    add(DNNL_ARG_WEIGHTS, b);
    add(DNNL_ARG_DST, c);
    if (bias) add(DNNL_ARG_BIAS, row);
  }

  void run(const float* a, const float* b, const float* bias, float* c) const {
    onednn::set_data(memory_[0], a);
    onednn::set_data(memory_[1], b);
    onednn::set_data(memory_[2], c);
    if (bias) onednn::set_data(memory_[3], bias);
    onednn::execute(primitive_, count_, arguments_);
  }

 private:
  [[gnu::cold]] void add(int name, const onednn::Descriptor& descriptor) {
    memory_[count_] = onednn::make_memory(descriptor);
    arguments_[count_] = {name, memory_[count_].get()};
    ++count_;
  }

  onednn::Primitive primitive_;
  onednn::Memory memory_[4];
  dnnl_exec_arg_t arguments_[4];
  int count_ = 0;
};

/// The plan for `key`, from the calling thread's cache or made now. The cache starts afresh when it is full;
/// oneDNN caches the generated code itself, so that making a plan again is cheap.
inline const GemmPlan& gemm_plan(const GemmKey& key) {
  constexpr std::size_t capacity = 256;
  onednn::Session::of_this_thread();  // made before the plans, so that it outlives them
  thread_local std::unordered_map<GemmKey, GemmPlan, GemmHash> plans;
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  if (plans.size() >= capacity) plans.clear();
  return plans.try_emplace(key, key.gemm, key.bias).first->second;
}

}  // namespace detail

/// C = op(A) op(B) + bias like `gemm`, always by oneDNN. All dimensions must be 1 or more. Throws
/// `DeviceError`.
inline void gemm_onednn(const Gemm& g, const float* a, const float* b, const float* bias, float* c) {
  apply_threads();
  // Where B needs no transposition, oneDNN's BLAS-like function is some 5 % faster than its matmul primitive.
  if (g.batch == 1 && !g.transpose_b && !bias)
    return onednn::check(dnnl_sgemm(g.transpose_a ? 'T' : 'N', 'N', g.m, g.n, g.k, 1.0f, a,
                                    g.transpose_a ? g.m : g.k, b, g.n, 0.0f, c, g.n),
                         "dnnl_sgemm");
  detail::gemm_plan({g, bias != nullptr, threads()}).run(a, b, bias, c);
}

}  // namespace taut::cpu

#endif  // TAUT_HAS_ONEDNN
