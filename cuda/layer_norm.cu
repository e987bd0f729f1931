// Layer normalisation and its gradients. A team of threads takes a row (rows.cuh) in three passes: mean,
// variance, result; the first from memory, the others from the caches. The gradient by x takes the row's
// statistics from x again, so that the forward pass keeps nothing. The sums over rows, which are the
// gradients by weight and bias, first write each row's two statistics, then go down the columns
// (columns.cuh), in an order that depends on the matrix alone. Everything is computed in float; all of the
// outputs is overwritten.

#include "taut/cuda/layer_norm_launch.hpp"

#include "taut/cuda/kernel/columns.cuh"
#include "taut/cuda/kernel/rows.cuh"

namespace taut::cuda {

namespace {

/// The mean of a row and 1 / √(variance + eps).
struct RowStatistics {
  float mean, inverse;

  __device__ float normal(float x) const { return (x - mean) * inverse; }
};

/// Σ term(x[i]) over a row, known to the whole team.
template <class Team, class E, class Term>
__device__ float sum_of_row(const Team& team, const E* x, std::int64_t n, const Term& term) {
  float sum = 0;
  for_each_vector(team, x, n, [&](std::int64_t i, const Vector<E>& values) {
    for (int j = 0; j < vector_size<E>; ++j) sum += i + j < n ? term(float(values[j])) : 0;
  });
  return team.reduce(sum, Sum{});
}

/// A row's statistics. The mean is computed about the first element, so that that of equal ones is exact, and
/// the variance about the mean, so that nothing cancels.
template <class Team, class E>
__device__ RowStatistics row_statistics(const Team& team, const E* x, std::int64_t n, float eps) {
  const float first = n > 0 ? float(x[0]) : 0, count = static_cast<float>(n);
  const float mean = first + sum_of_row(team, x, n, [first](float value) { return value - first; }) / count;
  const float squares =
      sum_of_row(team, x, n, [mean](float value) { return (value - mean) * (value - mean); });
  return {mean, 1 / sqrtf(squares / count + eps)};
}

template <class E> struct NormalizeRow {
  std::int64_t length;
  float eps;
  const E* x;
  const E* weight;
  const E* bias;
  E* y;

  template <class Team> __device__ void operator()(const Team& team, std::int64_t row, std::int64_t n) const {
    const E* const from = x + row * length;
    E* const to = y + row * length;
    const RowStatistics of_row = row_statistics(team, from, n, eps);
    const bool aligned = vector_aligned(to), parameters_aligned = vector_aligned(weight, bias);
    for_each_vector(team, from, n, [&](std::int64_t i, Vector<E> values) {
      const Vector<E> factors = load_vector(weight + i, n - i, parameters_aligned);
      const Vector<E> shifts = load_vector(bias + i, n - i, parameters_aligned);
      for (int j = 0; j < vector_size<E>; ++j)
        values[j] = E(of_row.normal(float(values[j])) * float(factors[j]) + float(shifts[j]));
      store_vector(to + i, values, n - i, aligned);
    });
  }
};

/// (h - mean(h) - x̂ mean(h x̂)) / √(variance + eps) with h = g weight
template <class E> struct GradientOfRow {
  std::int64_t length;
  float eps;
  const E* g;
  const E* x;
  const E* weight;
  E* y;

  template <class Team> __device__ void operator()(const Team& team, std::int64_t row, std::int64_t n) const {
    const E* const gradient = g + row * length;
    const E* const from = x + row * length;
    E* const to = y + row * length;
    const RowStatistics of_row = row_statistics(team, from, n, eps);
    const bool aligned = vector_aligned(gradient, weight, to);
    // Calls visit(i, x[i …], h[i …]), with zeros for h beyond the end.
    const auto for_each_h = [&](const auto& visit) {
      for_each_vector(team, from, n, [&](std::int64_t i, const Vector<E>& values) {
        const Vector<E> gradients = load_vector(gradient + i, n - i, aligned);
        const Vector<E> factors = load_vector(weight + i, n - i, aligned);
        float h[vector_size<E>];
        for (int j = 0; j < vector_size<E>; ++j) h[j] = float(gradients[j]) * float(factors[j]);
        visit(i, values, h);
      });
    };
    float sum = 0, with_normal = 0;
    for_each_h([&](std::int64_t i, const Vector<E>& values, const float* h) {
      for (int j = 0; j < vector_size<E>; ++j) {
        sum += h[j];
        with_normal += i + j < n ? h[j] * of_row.normal(float(values[j])) : 0;
      }
    });
    const float mean = team.reduce(sum, Sum{}) / static_cast<float>(n);
    const float mean_with_normal = team.reduce(with_normal, Sum{}) / static_cast<float>(n);
    for_each_h([&](std::int64_t i, Vector<E> values, const float* h) {
      for (int j = 0; j < vector_size<E>; ++j) {
        const float normal = of_row.normal(float(values[j]));
        values[j] = E((h[j] - mean - normal * mean_with_normal) * of_row.inverse);
      }
      store_vector(to + i, values, n - i, aligned);
    });
  }
};

template <class E> struct WriteRowStatistics {
  std::int64_t length;
  float eps;
  const E* x;
  RowStatistics* to;

  template <class Team> __device__ void operator()(const Team& team, std::int64_t row, std::int64_t n) const {
    const RowStatistics of_row = row_statistics(team, x + row * length, n, eps);
    if (n > 0 && team.rank() == 0) to[row] = of_row;
  }
};

/// Σ g and Σ g x̂
template <class E> struct GradientSumSource {
  template <int width> using Total = GradientSums<width>;
  std::int64_t columns;
  const E* g;
  const E* x;
  const RowStatistics* statistics;

  template <int width> __device__ void add(GradientSums<width>& sum, const ThreadRows& rows) const {
    for (std::int64_t k = 0; k < rows.count; ++k) {
      const std::int64_t at = rows.at + k * rows.step;
      const RowStatistics of_row = statistics[rows.row + k * rows.row_step];
      const Vector<E, width> gradients = load_vector<E, width>(g + at),
                             values = load_vector<E, width>(x + at);
      for (int i = 0; i < width; ++i) {
        sum.plain[i] += float(gradients[i]);
        sum.centred[i] += float(gradients[i]) * of_row.normal(float(values[i]));
      }
    }
  }
};

template <class E> struct WriteSums {
  std::int64_t columns;
  E* to;

  __device__ void operator()(std::int64_t column, const GradientSums<1>& sums) const {
    to[column] = E(sums.plain[0]);
    to[columns + column] = E(sums.centred[0]);
  }
};

}  // namespace

template <class E>
void launch_layer_norm(std::int64_t rows, std::int64_t n, float eps, const E* x, const E* weight,
                       const E* bias, E* y, Stream stream) {
  if (n == 0) return;
  launch_on_rows<E>(rows, n, NormalizeRow<E>{n, eps, x, weight, bias, y}, stream);
}

template <class E>
void launch_layer_norm_gradient(std::int64_t rows, std::int64_t n, float eps, const E* g, const E* x,
                                const E* weight, E* to, Stream stream) {
  if (n == 0) return;
  launch_on_rows<E>(rows, n, GradientOfRow<E>{n, eps, g, x, weight, to}, stream);
}

template <class E>
void launch_layer_norm_sums(std::int64_t rows, std::int64_t n, float eps, const E* g, const E* x,
                            float* workspace, E* to, Stream stream) {
  if (n == 0) return;
  auto* const statistics = reinterpret_cast<RowStatistics*>(workspace);
  launch_on_rows<E>(rows, n, WriteRowStatistics<E>{n, eps, x, statistics}, stream);
  launch_sum_columns<E>(ColumnThreads::over(n, g, x), rows, n, column_groups(rows),
                        GradientSumSource<E>{n, g, x, statistics}, workspace + 2 * rows, WriteSums<E>{n, to},
                        stream);
}

#define TAUT_INSTANTIATE(E)                                                                                 \
  template void launch_layer_norm(std::int64_t, std::int64_t, float, const E*, const E*, const E*, E*,      \
                                  Stream);                                                                  \
  template void launch_layer_norm_gradient(std::int64_t, std::int64_t, float, const E*, const E*, const E*, \
                                           E*, Stream);                                                     \
  template void launch_layer_norm_sums(std::int64_t, std::int64_t, float, const E*, const E*, float*, E*,   \
                                       Stream);
TAUT_INSTANTIATE(float)
TAUT_INSTANTIATE(bfloat16)
#undef TAUT_INSTANTIATE

}  // namespace taut::cuda
