// What matmul.cpp asks of cuBLASLt, with a model of it on the host in its place: the model multiplies columns
// as cuBLASLt's documentation says, so results are right only if operands, strides and the bias are described
// rightly. Needs the library's headers, but neither the library nor a GPU.

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "taut/core/bfloat16.hpp"
#include "taut/cuda/buffer.hpp"
#include "taut/cuda/matmul_launch.hpp"
#include "taut/cuda/precision.hpp"
#include "taut/op/unary.hpp"

namespace {

/// A descriptor of the model: its attributes by number.
struct Attributes {
  std::map<int, std::vector<std::byte>> values;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  cudaDataType type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;

  cublasStatus_t set(int name, const void* value, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(value);
    values[name].assign(begin, begin + bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  template <class X> X get(int name, X otherwise) const {
    const auto found = values.find(name);
    if (found == values.end()) return otherwise;
    EXPECT_EQ(found->second.size(), sizeof(X)) << "attribute " << name;
    std::memcpy(&otherwise, found->second.data(), sizeof(X));
    return otherwise;
  }
};

template <class Handle> const Attributes& attributes(Handle handle) {
  return *reinterpret_cast<const Attributes*>(handle);
}
template <class Handle> Attributes& mutable_attributes(Handle handle) {
  return *reinterpret_cast<Attributes*>(handle);
}

/// Element (i, j) of item `item` of a matrix as memory has it.
float element(const void* memory, const Attributes& layout, std::int64_t item, std::int64_t i,
              std::int64_t j) {
  const auto stride = layout.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0);
  const auto at = item * stride + j * layout.leading + i;
  return layout.type == CUDA_R_16BF ? static_cast<const taut::bfloat16*>(memory)[at]
                                    : static_cast<const float*>(memory)[at];
}

/// What follows the product.
int epilogue_of(cublasLtMatmulDesc_t descriptor) {
  return attributes(descriptor).get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
}

/// How an algorithm treats NaN: the model's ReLU is then max(x, 0).
enum class LosesNan { none, all_but_last, all };

/// The model has and runs epilogues up to these, which are none, a bias and then functions.
int last_known_epilogue = CUBLASLT_EPILOGUE_GELU_BIAS, last_running_epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;

int multiplications = 0;                               ///< since the program began
int refused_algorithm = 0;                             ///< the model refuses this one of its three
LosesNan loses_nan = LosesNan::none;                   ///< which of the algorithms do
cublasStatus_t unknown = CUBLAS_STATUS_NOT_SUPPORTED;  ///< what is said of epilogues that there are not
cublasComputeType_t computed_in;                       ///< of the last multiplication

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int any;
  *handle = reinterpret_cast<cublasLtHandle_t>(&any);
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t) { return "a status"; }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  auto* const made = new Attributes;
  made->type = type, made->rows = rows, made->columns = columns, made->leading = leading;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                std::size_t bytes) {
  return mutable_attributes(layout).set(name, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(const cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Attributes*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t compute,
                                        cudaDataType_t) {
  auto* const made = new Attributes;
  made->compute = compute;
  *descriptor = reinterpret_cast<cublasLtMatmulDesc_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t name, const void* value,
                                              std::size_t bytes) {
  return mutable_attributes(descriptor).set(name, value, bytes);
}
cublasStatus_t cublasLtMatmulDescDestroy(const cublasLtMatmulDesc_t descriptor) {
  delete reinterpret_cast<Attributes*>(descriptor);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t bytes) {
  return mutable_attributes(preference).set(name, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(const cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Attributes*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  EXPECT_GE(requested, 3);
  *found = 0;
  if (epilogue_of(descriptor) > last_known_epilogue) return unknown;
  const auto most = attributes(preference).get<std::size_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0);
  for (int i = 0; i < 3; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
    results[i].workspaceSize = i == 0 ? 0 : most / 1024;
  }
  *found = 3;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t descriptor, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                              cublasLtMatrixLayout_t layout_b, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t bytes,
                              cudaStream_t) {
  if (algorithm->data[0] == static_cast<std::uint64_t>(refused_algorithm)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (epilogue_of(descriptor) > last_running_epilogue) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (bytes > 0) std::memset(workspace, 0, bytes);
  ++multiplications;
  const Attributes& what = attributes(descriptor);
  computed_in = what.compute;
  const Attributes &left = attributes(layout_a), &right = attributes(layout_b), &out = attributes(layout_d);
  const bool transpose_a = what.get(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T;
  const bool transpose_b = what.get(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
  const auto m = static_cast<std::int64_t>(out.rows), n = static_cast<std::int64_t>(out.columns);
  const auto k = static_cast<std::int64_t>(transpose_a ? left.rows : left.columns);
  EXPECT_EQ(static_cast<std::int64_t>(transpose_a ? left.columns : left.rows), m);
  EXPECT_EQ(static_cast<std::int64_t>(transpose_b ? right.rows : right.columns), n);
  EXPECT_EQ(static_cast<std::int64_t>(transpose_b ? right.columns : right.rows), k);
  const auto epilogue = epilogue_of(descriptor);
  const bool biased = (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const auto* const bias = what.get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
  Attributes column;  // the bias is a column of the result
  column.type = what.get(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, out.type);
  const auto batch = out.get<std::int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
  for (std::int64_t item = 0; item < batch; ++item)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        float sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += element(a, left, item, transpose_a ? p : i, transpose_a ? i : p) *
                 element(b, right, item, transpose_b ? j : p, transpose_b ? p : j);
        sum = *static_cast<const float*>(alpha) * sum + (biased ? element(bias, column, 0, i, 0) : 0);
        const bool loses =
            loses_nan == LosesNan::all || (loses_nan == LosesNan::all_but_last && algorithm->data[0] < 2);
        if (epilogue == CUBLASLT_EPILOGUE_RELU_BIAS)
          sum = loses ? std::fmax(sum, 0.0f) : taut::op::Relu{}(sum);
        if (epilogue == CUBLASLT_EPILOGUE_GELU_BIAS) sum = taut::op::GeluTanh{}(sum);
        EXPECT_EQ(*static_cast<const float*>(beta), 0.0f);
        const auto at = item * out.get<std::int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0) +
                        j * out.leading + i;
        if (out.type == CUDA_R_16BF)
          static_cast<taut::bfloat16*>(d)[at] = taut::bfloat16(sum);
        else
          static_cast<float*>(d)[at] = sum;
      }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

namespace taut::cuda {

namespace {
bool timing_allowed = true;
}

bool can_time(Stream) { return timing_allowed; }

namespace {

/// Values that the arithmetic of both types has, so that results are exact.
std::vector<float> integers(std::int64_t count) {
  static std::mt19937 random(1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 5) - 2);
  return values;
}

template <class E> class OnDevice {
 public:
  explicit OnDevice(const std::vector<float>& values)
      : buffer_(Buffer::allocate(values.size() * sizeof(E))), count_(values.size()) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = E(values[i]);
  }
  E* data() { return reinterpret_cast<E*>(buffer_.data()); }
  std::vector<float> host() { return {data(), data() + count_}; }

 private:
  Buffer buffer_;
  std::size_t count_;
};

/// C = op(A) op(B) + bias by the definition.
std::vector<float> expected(const Product& p, const std::vector<float>& a, const std::vector<float>& b,
                            const std::vector<float>& bias) {
  std::vector<float> c;
  for (std::int64_t item = 0; item < p.batch; ++item)
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        float sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < p.k; ++k)
          sum +=
              a[static_cast<std::size_t>(item * p.stride_a + (p.transpose_a ? k * p.m + i : i * p.k + k))] *
              b[static_cast<std::size_t>(item * p.stride_b + (p.transpose_b ? j * p.k + k : k * p.n + j))];
        c.push_back(p.activation == Activation::relu        ? op::Relu{}(sum)
                    : p.activation == Activation::gelu_tanh ? op::GeluTanh{}(sum)
                                                            : sum);
      }
  return c;
}

/// Checks a product of integers; false if it takes more than one pass.
template <class E> bool check(const Product& product, bool with_bias) {
  const auto a = integers(product.m * product.k * (product.stride_a > 0 ? product.batch : 1));
  const auto b = integers(product.k * product.n * (product.stride_b > 0 ? product.batch : 1));
  const auto bias = with_bias ? integers(product.n) : std::vector<float>();
  OnDevice<E> left(a), right(b), added(bias),
      result(std::vector<float>(static_cast<std::size_t>(product.batch * product.m * product.n)));
  if (!launch_matmul<E>(product, left.data(), right.data(), with_bias ? added.data() : nullptr, result.data(),
                        current_stream()))
    return false;
  OnDevice<E> rounded(expected(product, a, b, bias));
  EXPECT_EQ(result.host(), rounded.host()) << product.m << " " << product.n << " " << product.k << " "
                                           << product.transpose_a << product.transpose_b;
  return true;
}

TEST(CublasLt, IsAskedForTheRightProduct) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const bool with_bias : {false, true}) {
        Product product{.m = 3, .n = 5, .k = 4, .transpose_a = transpose_a, .transpose_b = transpose_b};
        EXPECT_TRUE(check<float>(product, with_bias));
        EXPECT_TRUE(check<bfloat16>(product, with_bias));
        product.batch = 3;
        for (const bool share_a : {false, true}) {
          product.stride_a = share_a ? 0 : product.m * product.k;
          product.stride_b = product.k * product.n;
          EXPECT_TRUE(check<float>(product, with_bias));
          EXPECT_TRUE(check<bfloat16>(product, with_bias));
        }
      }
  EXPECT_TRUE(check<float>({.m = 1, .n = 1, .k = 1}, true));
}

TEST(CublasLt, IsTimedOnceForEachKindOfProduct) {
  const Product product{.m = 7, .n = 2, .k = 3};
  for (const bool with_bias : {false, true}) {
    int before = multiplications;
    check<float>(product, with_bias);
    EXPECT_EQ(multiplications - before, 2 * 4 + 1) << "two algorithms, and one that is refused";
    before = multiplications;
    check<float>(product, with_bias);
    EXPECT_EQ(multiplications - before, 1);
  }
}

TEST(CublasLt, EndsProductsWithAFunction) {
  for (const auto activation : {Activation::relu, Activation::gelu_tanh}) {
    const Product product{.m = 3, .n = 5, .k = 4, .transpose_b = true, .activation = activation};
    EXPECT_TRUE(check<bfloat16>(product, true));
    EXPECT_TRUE(check<bfloat16>(product, true)) << "with its own bias again";
    EXPECT_EQ(check<float>(product, true), activation == Activation::relu)
        << "cuBLASLt's GELU has too few digits for floats";
    allow_tf32(true);
    EXPECT_TRUE(check<float>(product, true)) << "but not for TF32";
    allow_tf32(false);
  }
}

TEST(CublasLt, LeavesEndingsThatItLacksToOthers) {
  std::int64_t m = 100;
  for (const auto status : {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_SUCCESS})
    for (int* const last : {&last_known_epilogue, &last_running_epilogue}) {
      unknown = status;
      *last = CUBLASLT_EPILOGUE_BIAS;
      Product product{.m = ++m, .n = 7, .k = 4, .activation = Activation::relu};
      EXPECT_FALSE(check<float>(product, true));
      product.activation = Activation::none;
      EXPECT_TRUE(check<float>(product, true));
      *last = CUBLASLT_EPILOGUE_DEFAULT;
      product.m = ++m;
      EXPECT_FALSE(check<float>(product, true));
      EXPECT_TRUE(check<float>(product, false));
      *last = CUBLASLT_EPILOGUE_GELU_BIAS;
      const int before = multiplications;
      EXPECT_FALSE(check<float>(product, true));
      EXPECT_EQ(multiplications, before) << "and does not try again";
    }
}

TEST(CublasLt, FindsOutNothingDuringACapture) {
  refused_algorithm = 2;
  for (const auto activation : {Activation::none, Activation::relu}) {
    const Product product{.m = 3, .n = 8, .k = 4, .activation = activation};
    timing_allowed = false;
    const int before = multiplications;
    EXPECT_FALSE(check<float>(product, true));
    EXPECT_EQ(multiplications, before);
    timing_allowed = true;
    EXPECT_TRUE(check<float>(product, true));
    timing_allowed = false;
    EXPECT_TRUE(check<float>(product, true)) << "what is known stays";
    timing_allowed = true;
  }
  refused_algorithm = 0;
}

TEST(CublasLt, TakesTheFirstAlgorithmDuringACapture) {
  const Product product{.m = 8, .n = 2, .k = 3};
  timing_allowed = false;
  refused_algorithm = 2;
  int before = multiplications;
  check<float>(product, false);
  EXPECT_EQ(multiplications - before, 1);
  timing_allowed = true;
  before = multiplications;
  check<float>(product, false);
  EXPECT_EQ(multiplications - before, 2 * 4 + 1) << "and chooses afterwards";
  refused_algorithm = 0;
}

TEST(CublasLt, SaysWhichCallFailed) {
  timing_allowed = false;  // the first algorithm is refused
  try {
    check<float>({.m = 9, .n = 2, .k = 3}, false);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cublasLtMatmul failed with code 15"), std::string::npos)
        << error.what();
  }
  timing_allowed = true;
}

TEST(CublasLt, RoundsToTf32OnlyIfThatIsAllowed) {
  check<float>({.m = 10, .n = 2, .k = 3}, false);
  EXPECT_EQ(computed_in, CUBLAS_COMPUTE_32F);
  allow_tf32(true);
  check<float>({.m = 10, .n = 2, .k = 3}, false);
  EXPECT_EQ(computed_in, CUBLAS_COMPUTE_32F_FAST_TF32);
  check<bfloat16>({.m = 10, .n = 2, .k = 3}, false);
  EXPECT_EQ(computed_in, CUBLAS_COMPUTE_32F);
  allow_tf32(false);
}

// After this no product of the program has a ReLU.
TEST(CublasLt, TakesNoFunctionThatLosesNan) {
  loses_nan = LosesNan::all_but_last;
  Product product{.m = 3, .n = 6, .k = 4, .activation = Activation::relu};
  EXPECT_TRUE(check<float>(product, true)) << "the last algorithm keeps it";
  loses_nan = LosesNan::all;
  product.m = 4;
  EXPECT_FALSE(check<float>(product, true));
  EXPECT_FALSE(check<bfloat16>(product, true));
  for (product.m = 4; product.m < 7; ++product.m) {
    const int before = multiplications;
    EXPECT_FALSE(check<float>(product, true));
    EXPECT_FALSE(check<bfloat16>(product, true));
    EXPECT_EQ(multiplications, before) << "and does not try again, of whatever shape";
  }
  product.m = 3;
  EXPECT_TRUE(check<float>(product, true)) << "what is known stays";
  product.activation = Activation::gelu_tanh;
  EXPECT_TRUE(check<bfloat16>(product, true)) << "which says nothing of other functions";
  loses_nan = LosesNan::none;
}

}  // namespace
}  // namespace taut::cuda
