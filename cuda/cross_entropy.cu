// Cross-entropy, its gradient and selection by label. The forward pass keeps nothing: the gradient computes
// the softmax of each row again from the logits, which costs less than to store it. A team of threads takes a
// row (rows.cuh); the losses of the rows are summed by one block in a fixed order, in double. A label that is
// no class makes NaN of what depends on it, and is never used as an index. All of the outputs is overwritten.

#include "taut/cuda/cross_entropy_launch.hpp"

#include "taut/cuda/kernel/divide.cuh"
#include "taut/cuda/kernel/rows.cuh"

namespace taut::cuda {

namespace {

__device__ bool is_class(std::int64_t label, std::int64_t classes) { return 0 <= label && label < classes; }

template <class E>
__global__ void pick(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels, E* to) {
  for (auto i = grid_thread(); i < rows; i += grid_threads())
    to[i] = is_class(labels[i], classes) ? x[i * classes + labels[i]] : E(NAN);
}

template <class E>
__global__ void unpick(std::int64_t size, LongDivider classes, const E* x, const std::int64_t* labels,
                       E* to) {
  for (auto at = grid_thread(); at < size; at += grid_threads()) {
    const std::int64_t row = classes.divide(at), label = labels[row];
    const bool is_label = at - row * classes.divisor == label;
    to[at] = is_label ? x[row] : E(is_class(label, classes.divisor) ? 0.0f : NAN);
  }
}

/// ln Σ exp(x) - x[label]. The largest logit is subtracted from the label's before anything is rounded, so
/// that losses of large logits keep their digits.
template <class E> struct LossOfRow {
  std::int64_t classes;
  const E* x;
  const std::int64_t* labels;
  float* losses;

  template <class Team> __device__ void operator()(const Team& team, std::int64_t row, std::int64_t n) const {
    const E* const from = x + row * classes;
    const RowExponentials of_row = row_exponentials(team, from, n);
    if (n == 0 || team.rank() != 0) return;
    const std::int64_t label = labels[row];
    losses[row] = is_class(label, n) ? logf(of_row.sum) + (of_row.largest - float(from[label])) : NAN;
  }
};

template <class E> __global__ void mean_of_losses(std::int64_t rows, const float* losses, E* to) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += double(losses[i]);
  sum = block_reduce(sum, Sum{});
  if (threadIdx.x == 0) *to = E(static_cast<float>(sum / static_cast<double>(rows)));
}

template <class E> struct GradientOfRow {
  std::int64_t classes;
  float rows;
  const E* g;
  const E* x;
  const std::int64_t* labels;
  E* to;

  template <class Team> __device__ void operator()(const Team& team, std::int64_t row, std::int64_t n) const {
    const E* const from = x + row * classes;
    E* const target = to + row * classes;
    const RowExponentials of_row = row_exponentials(team, from, n);
    if (n == 0) return;
    const std::int64_t label = labels[row];
    const float scale = is_class(label, n) ? float(*g) / rows : NAN;
    const bool aligned = vector_aligned(target);
    for_each_vector(team, from, n, [&](std::int64_t i, Vector<E> values) {
      for (int j = 0; j < vector_size<E>; ++j) {
        const float probability = expf(float(values[j]) - of_row.largest) / of_row.sum;
        values[j] = E((probability - (i + j == label ? 1.0f : 0.0f)) * scale);
      }
      store_vector(target + i, values, n - i, aligned);
    });
  }
};

}  // namespace

template <class E>
void launch_pick(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels, E* to,
                 Stream stream) {
  if (rows == 0) return;
  launch(pick<E>, blocks_for(rows, block_threads), block_threads, 0, stream, rows, classes, x, labels, to);
}

template <class E>
void launch_unpick(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels, E* to,
                   Stream stream) {
  const std::int64_t size = rows * classes;
  if (size == 0) return;
  launch(unpick<E>, blocks_for(size, block_threads), block_threads, 0, stream, size, LongDivider(classes), x,
         labels, to);
}

template <class E>
void launch_cross_entropy(std::int64_t rows, std::int64_t classes, const E* x, const std::int64_t* labels,
                          float* losses, E* to, Stream stream) {
  if (classes > 0) launch_on_rows<E>(rows, classes, LossOfRow<E>{classes, x, labels, losses}, stream);
  launch(mean_of_losses<E>, 1, 1024, 0, stream, classes > 0 ? rows : 0, losses, to);  // NaN of no losses
}

template <class E>
void launch_cross_entropy_gradient(std::int64_t rows, std::int64_t classes, const E* g, const E* x,
                                   const std::int64_t* labels, E* to, Stream stream) {
  if (classes == 0) return;
  launch_on_rows<E>(rows, classes, GradientOfRow<E>{classes, static_cast<float>(rows), g, x, labels, to},
                    stream);
}

#define TAUT_INSTANTIATE(E)                                                                                 \
  template void launch_pick(std::int64_t, std::int64_t, const E*, const std::int64_t*, E*, Stream);         \
  template void launch_unpick(std::int64_t, std::int64_t, const E*, const std::int64_t*, E*, Stream);       \
  template void launch_cross_entropy(std::int64_t, std::int64_t, const E*, const std::int64_t*, float*, E*, \
                                     Stream);                                                               \
  template void launch_cross_entropy_gradient(std::int64_t, std::int64_t, const E*, const E*,               \
                                              const std::int64_t*, E*, Stream);
TAUT_INSTANTIATE(float)
TAUT_INSTANTIATE(bfloat16)
#undef TAUT_INSTANTIATE

}  // namespace taut::cuda
