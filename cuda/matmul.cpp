// Matrix products by cuBLASLt. It thinks in columns, so a row-major C = A B is computed as Cᵀ = Bᵀ Aᵀ, with
// the operands' memory as it is; the bias, which each row of C gets, and a function after it are an epilogue
// of the product. For each kind of product the first few algorithms that cuBLASLt proposes are run, and the
// fastest is kept, unless the stream is being captured, when the first is taken. Partial sums over k are
// added as floats.
//
// An algorithm with an epilogue is only taken once it has been seen to run, and one with a function once it
// has been seen to keep NaN; during a capture nothing can be tried. What is not taken is left to the caller.

#include "taut/cuda/matmul_launch.hpp"

#include <cublasLt.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "nan_trial.hpp"
#include "taut/core/bfloat16.hpp"
#include "taut/cuda/buffer.hpp"
#include "taut/cuda/precision.hpp"
#include "timing.hpp"

namespace taut::cuda {

namespace {

/// How many algorithms are timed, and how much working memory they may have.
constexpr int most_candidates = 6;
constexpr std::size_t most_workspace = std::size_t{32} << 20;

void check(const char* call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(call, static_cast<int>(status),
                      std::string("cuda: ") + cublasLtGetStatusString(status));
}

/// What algorithms are chosen by.
struct ProductKind {
  Product product;
  bool narrow = false;  ///< bfloat16 instead of float
  bool bias = false, tf32 = false;

  friend auto operator<=>(const ProductKind&, const ProductKind&) = default;
};

/// The memory of one operand, as columns.
class MatrixLayout {
 public:
  MatrixLayout(bool narrow, std::int64_t rows, std::int64_t columns, std::int64_t batch,
               std::int64_t stride) {
    check("cublasLtMatrixLayoutCreate",
          cublasLtMatrixLayoutCreate(&layout_, narrow ? CUDA_R_16BF : CUDA_R_32F,
                                     static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                     rows));
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }

  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  template <class X> void set(cublasLtMatrixLayoutAttribute_t name, X value) {
    check("cublasLtMatrixLayoutSetAttribute",
          cublasLtMatrixLayoutSetAttribute(layout_, name, &value, sizeof value));
  }

  cublasLtMatrixLayout_t layout_ = nullptr;
};

/// What is to be computed with the operands.
class MatmulDescriptor {
 public:
  explicit MatmulDescriptor(const ProductKind& kind) {
    check("cublasLtMatmulDescCreate",
          cublasLtMatmulDescCreate(
              &descriptor_, kind.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    // cuBLASLt's first operand is B.
    set(CUBLASLT_MATMUL_DESC_TRANSA, kind.product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, kind.product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (!kind.bias) return;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(kind.product.activation));
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, kind.narrow ? CUDA_R_16BF : CUDA_R_32F);
  }
  MatmulDescriptor(const MatmulDescriptor&) = delete;
  MatmulDescriptor& operator=(const MatmulDescriptor&) = delete;
  ~MatmulDescriptor() { cublasLtMatmulDescDestroy(descriptor_); }

  void set_bias(const void* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  cublasLtMatmulDesc_t get() const { return descriptor_; }

 private:
  static cublasLtEpilogue_t epilogue(Activation activation) {
    switch (activation) {
      case Activation::relu:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
      case Activation::gelu_tanh:
        return CUBLASLT_EPILOGUE_GELU_BIAS;
      case Activation::none:
        break;
    }
    return CUBLASLT_EPILOGUE_BIAS;
  }
  template <class X> void set(cublasLtMatmulDescAttributes_t name, X value) {
    check("cublasLtMatmulDescSetAttribute",
          cublasLtMatmulDescSetAttribute(descriptor_, name, &value, sizeof value));
  }

  cublasLtMatmulDesc_t descriptor_ = nullptr;
};

/// Limits for the proposal of algorithms.
class Preference {
 public:
  Preference() {
    check("cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate(&preference_));
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }

  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <class X> void set(cublasLtMatmulPreferenceAttributes_t name, X value) {
    check("cublasLtMatmulPreferenceSetAttribute",
          cublasLtMatmulPreferenceSetAttribute(preference_, name, &value, sizeof value));
  }

  cublasLtMatmulPreference_t preference_ = nullptr;
};

/// Where the operands of a product are.
struct ProductPointers {
  const void *a, *b, *bias;
  void* c;
};

/// One kind of product, and how it is computed.
class MatmulPlan {
 public:
  MatmulPlan(cublasLtHandle_t handle, const ProductKind& kind)
      : descriptor_(kind), a_(operand_a(kind)), b_(operand_b(kind)), c_(result(kind)) {
    const Preference preference;
    candidates_.resize(most_candidates);
    int found = 0;
    check("cublasLtMatmulAlgoGetHeuristic",
          cublasLtMatmulAlgoGetHeuristic(handle, descriptor_.get(), b_.get(), a_.get(), c_.get(), c_.get(),
                                         preference.get(), most_candidates, candidates_.data(), &found));
    candidates_.resize(static_cast<std::size_t>(found));
    if (candidates_.empty())
      throw DeviceError("cublasLtMatmulAlgoGetHeuristic", 0, "matmul: cuBLASLt has no algorithm");
  }

  /// Drops the algorithms that lose NaN or do not run; whether there were any of the former. Overwrites C.
  bool drop_what_loses_nan(cublasLtHandle_t handle, const ProductKind& kind, const ProductPointers& at,
                           Stream stream) {
    return cuda::drop_what_loses_nan(candidates_, {at.c, kind.narrow, kind.product.n}, stream,
                                     [&](const auto& candidate, const void* bias) {
                                       run(handle, candidate, {at.a, at.b, bias, at.c}, stream);
                                     });
  }

  bool has_candidates() const { return !candidates_.empty(); }

  /// Chooses the fastest algorithm. Throws if none of them runs.
  void choose(cublasLtHandle_t handle, const ProductPointers& at, Stream stream) {
    keep_fastest(candidates_, stream, [&](const auto& candidate) { run(handle, candidate, at, stream); });
  }

  void run(cublasLtHandle_t handle, const ProductPointers& at, Stream stream) {
    if (candidates_.size() > 1 && can_time(stream)) choose(handle, at, stream);
    run(handle, candidates_.front(), at, stream);
  }

 private:
  static MatrixLayout operand_a(const ProductKind& kind) {
    const Product& p = kind.product;
    return p.transpose_a ? MatrixLayout(kind.narrow, p.m, p.k, p.batch, p.stride_a)
                         : MatrixLayout(kind.narrow, p.k, p.m, p.batch, p.stride_a);
  }
  static MatrixLayout operand_b(const ProductKind& kind) {
    const Product& p = kind.product;
    return p.transpose_b ? MatrixLayout(kind.narrow, p.k, p.n, p.batch, p.stride_b)
                         : MatrixLayout(kind.narrow, p.n, p.k, p.batch, p.stride_b);
  }
  static MatrixLayout result(const ProductKind& kind) {
    const Product& p = kind.product;
    return MatrixLayout(kind.narrow, p.n, p.m, p.batch, p.m * p.n);
  }

  void run(cublasLtHandle_t handle, const cublasLtMatmulHeuristicResult_t& candidate,
           const ProductPointers& at, Stream stream) {
    if (at.bias != nullptr) descriptor_.set_bias(at.bias);
    const float alpha = 1, beta = 0;
    const Buffer workspace =
        candidate.workspaceSize > 0 ? Buffer::allocate(candidate.workspaceSize) : Buffer();
    check("cublasLtMatmul",
          cublasLtMatmul(handle, descriptor_.get(), &alpha, at.b, b_.get(), at.a, a_.get(), &beta, at.c,
                         c_.get(), at.c, c_.get(), &candidate.algo, workspace.data(stream),
                         candidate.workspaceSize, reinterpret_cast<cudaStream_t>(stream)));
  }

  MatmulDescriptor descriptor_;
  MatrixLayout a_, b_, c_;
  std::vector<cublasLtMatmulHeuristicResult_t> candidates_;  ///< one, once it has been chosen
};

/// What one device knows of products.
class MatmulEngine {
 public:
  MatmulEngine() { check("cublasLtCreate", cublasLtCreate(&handle_)); }

  /// Computes a product with its bias and function; false, with C undefined, if they take a pass of their
  /// own.
  bool compute(const ProductKind& kind, const ProductPointers& at, Stream stream) {
    const std::lock_guard lock(mutex_);
    if (kind.bias && !can_end(kind, at, stream)) return false;
    auto& plan = plans_[kind];
    if (!plan) plan = std::make_unique<MatmulPlan>(handle_, kind);
    plan->run(handle_, at, stream);
    return true;
  }

 private:
  /// Whether there is an algorithm with the product's epilogue that runs and is known to be right. Nothing
  /// new is found out during a capture.
  bool can_end(const ProductKind& kind, const ProductPointers& at, Stream stream) {
    const auto known = plans_.find(kind);
    if (known != plans_.end()) return known->second != nullptr;
    const Activation activation = kind.product.activation;
    if (!can_time(stream) || is_coarse(kind) || loses_nan_.contains({kind.narrow, activation})) return false;
    auto& plan = plans_[kind];
    try {
      auto made = std::make_unique<MatmulPlan>(handle_, kind);
      const bool lost =
          activation != Activation::none && made->drop_what_loses_nan(handle_, kind, at, stream);
      if (made->has_candidates()) {
        made->choose(handle_, at, stream);
        plan = std::move(made);
      } else if (lost) {
        loses_nan_.insert({kind.narrow, activation});
      }
    } catch (const DeviceError&) {
      // cuBLASLt has none for this kind.
    }
    return plan != nullptr;
  }

  /// Whether the function may have fewer digits than the product: the tanh in cuBLASLt's GELU can be the
  /// hardware's, which is good to 2^-11.
  static bool is_coarse(const ProductKind& kind) {
    return kind.product.activation == Activation::gelu_tanh && !kind.narrow && !kind.tf32;
  }

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<ProductKind, std::unique_ptr<MatmulPlan>> plans_;  ///< null: its ending is a pass of its own
  /// The functions on bfloat16 (true) or float elements that are not tried again.
  std::set<std::pair<bool, Activation>> loses_nan_;
};

/// The engine of the current device; throws `DeviceError` if there is none. Engines are never destroyed:
/// buffers and threads may outlive the program's globals.
MatmulEngine& engine() {
  static std::mutex mutex;
  static auto& engines = *new std::map<int, std::unique_ptr<MatmulEngine>>;
  const int device = current_device();
  const std::lock_guard lock(mutex);
  auto& engine = engines[device];
  if (!engine) engine = std::make_unique<MatmulEngine>();
  return *engine;
}

}  // namespace

template <class E>
bool launch_matmul(const Product& product, const E* a, const E* b, const E* bias, E* c, Stream stream) {
  constexpr bool narrow = std::is_same_v<E, bfloat16>;
  const ProductKind kind{product, narrow, bias != nullptr, !narrow && tf32_allowed()};
  return engine().compute(kind, {a, b, bias, c}, stream);
}

template bool launch_matmul(const Product&, const float*, const float*, const float*, float*, Stream);
template bool launch_matmul(const Product&, const bfloat16*, const bfloat16*, const bfloat16*, bfloat16*,
                            Stream);

}  // namespace taut::cuda
