// Batch normalisation over images with the channels last, in one pass each: statistics, result, sums of the
// gradient, gradient. All of it waits for memory, so nothing is stored that can be computed again from what
// is read anyway: a ReLU's mask comes from x. Threads lie over the matrix of pixels and channels as
// columns.cuh says. Everything is computed in float; all of the outputs is overwritten.

#include "taut/cuda/batch_norm_launch.hpp"

#include "taut/cuda/kernel/columns.cuh"

namespace taut::cuda {

namespace {

/// The number of values, and of each column their mean and the sum of their squared distances from it. Source
/// of `merge`: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance", 1983.
template <int width> struct Moments {
  float count, mean[width], squares[width];

  __device__ static Moments zero() {
    Moments moments;
    moments.count = 0;
    for (int i = 0; i < width; ++i) moments.mean[i] = moments.squares[i] = 0;
    return moments;
  }
  __device__ void merge(const Moments& other) {
    if (other.count == 0) return;
    const float both = count + other.count, share = other.count / both;
    for (int i = 0; i < width; ++i) {
      const float distance = other.mean[i] - mean[i];
      mean[i] += distance * share;
      squares[i] += other.squares[i] + distance * distance * share * count;
    }
    count = both;
  }
  __device__ Moments<1> of(int i) const { return {count, {mean[i]}, {squares[i]}}; }
};

/// The moments of x. A few rows are taken at once: their mean is computed about the first, so that the mean
/// of equal values is exact, and their squares about the mean, so that nothing cancels.
template <class E> struct MomentSource {
  template <int width> using Total = Moments<width>;
  static constexpr int chunk = 8;
  const E* x;

  template <int width> __device__ void add(Moments<width>& sum, const ThreadRows& rows) const {
    for (std::int64_t done = 0; done < rows.count; done += chunk) {
      const int count = static_cast<int>(rows.count - done < chunk ? rows.count - done : chunk);
      Vector<E, width> values[chunk];
      for (int k = 0; k < chunk; ++k)
        if (k < count) values[k] = load_vector<E, width>(x + rows.at + (done + k) * rows.step);
      Moments<width> own;
      own.count = static_cast<float>(count);
      for (int i = 0; i < width; ++i) {
        const float first = float(values[0][i]);
        float distances = 0, squares = 0;
        for (int k = 1; k < chunk; ++k)
          if (k < count) distances += float(values[k][i]) - first;
        own.mean[i] = first + distances / own.count;
        for (int k = 0; k < chunk; ++k) {
          const float distance = k < count ? float(values[k][i]) - own.mean[i] : 0;
          squares += distance * distance;
        }
        own.squares[i] = squares;
      }
      sum.merge(own);
    }
  }
};

struct WriteStatistics {
  std::int64_t channels;
  float* to;

  __device__ void operator()(std::int64_t channel, const Moments<1>& moments) const {
    to[channel] = moments.mean[0];
    to[channels + channel] = moments.squares[0] / moments.count;
  }
};

template <class E>
__device__ float inverse_deviation(const BatchNormParameters<E>& parameters, std::int64_t channels,
                                   std::int64_t channel) {
  return 1 / sqrtf(parameters.statistics[channels + channel] + parameters.eps);
}

/// The parameters of a thread's channels: (x - mean) factor + bias.
template <int width> struct Affine {
  float mean[width], factor[width], bias[width], inverse[width];
  bool relu;

  template <class E>
  __device__ Affine(const BatchNormParameters<E>& parameters, std::int64_t channels, std::int64_t first)
      : relu(parameters.relu) {
    for (int i = 0; i < width; ++i) {
      mean[i] = parameters.statistics[first + i];
      inverse[i] = inverse_deviation(parameters, channels, first + i);
      factor[i] = float(parameters.weight[first + i]) * inverse[i];
      bias[i] = float(parameters.bias[first + i]);
    }
  }

  __device__ float centred(int i, float x) const { return x - mean[i]; }
  /// With the multiplication and the addition always rounded alike, so that all kernels agree on the mask.
  __device__ float result(int i, float x) const { return fmaf(centred(i, x), factor[i], bias[i]); }
  /// g, or 0 where ReLU cut the result off.
  __device__ float kept(int i, float g, float x) const { return relu && result(i, x) <= 0 ? 0 : g; }
};

template <int width, class E>
__global__ void normalize(std::int64_t rows, std::int64_t channels, const E* x,
                          BatchNormParameters<E> parameters, const E* residual, E* y) {
  const ThreadRows own = thread_rows(rows, channels, width);
  if (own.count == 0) return;
  const Affine<width> affine(parameters, channels, own.column);
  for (std::int64_t k = 0; k < own.count; ++k) {
    const std::int64_t at = own.at + k * own.step;
    Vector<E, width> values = load_vector<E, width>(x + at), added{};
    if (residual) added = load_vector<E, width>(residual + at);
    for (int i = 0; i < width; ++i) {
      float result = affine.result(i, float(values[i]));
      if (residual) result += float(added[i]);
      values[i] = E(affine.relu && result <= 0 ? 0 : result);
    }
    store_vector(y + at, values);
  }
}

/// Σ g and Σ g (x - mean)
template <class E> struct GradientSumSource {
  template <int width> using Total = GradientSums<width>;
  std::int64_t channels;
  const E* g;
  const E* x;
  BatchNormParameters<E> parameters;

  template <int width> __device__ void add(GradientSums<width>& sum, const ThreadRows& rows) const {
    if (rows.count == 0) return;
    const Affine<width> affine(parameters, channels, rows.column);
    for (std::int64_t k = 0; k < rows.count; ++k) {
      const std::int64_t at = rows.at + k * rows.step;
      const Vector<E, width> gradients = load_vector<E, width>(g + at),
                             values = load_vector<E, width>(x + at);
      for (int i = 0; i < width; ++i) {
        const float kept = affine.kept(i, float(gradients[i]), float(values[i]));
        sum.plain[i] += kept;
        sum.centred[i] += kept * affine.centred(i, float(values[i]));
      }
    }
  }
};

template <class E> struct WriteGradientSums {
  std::int64_t channels;
  BatchNormParameters<E> parameters;
  float* to;

  __device__ void operator()(std::int64_t channel, const GradientSums<1>& sums) const {
    to[channel] = sums.plain[0];
    to[channels + channel] = sums.centred[0] * inverse_deviation(parameters, channels, channel);
  }
};

/// factor (g - Σg / m - x̂ Σ(g x̂) / m) as factor g - offset - (x - mean) slope
template <int width, class E>
__global__ void gradient(std::int64_t rows, std::int64_t channels, const E* g, const E* x,
                         BatchNormParameters<E> parameters, const float* sums, E* to) {
  const ThreadRows own = thread_rows(rows, channels, width);
  if (own.count == 0) return;
  const Affine<width> affine(parameters, channels, own.column);
  float offset[width], slope[width];
  const float scale = 1 / static_cast<float>(rows);
  for (int i = 0; i < width; ++i) {
    const std::int64_t channel = own.column + i;
    offset[i] = sums ? affine.factor[i] * sums[channel] * scale : 0;
    slope[i] = sums ? affine.factor[i] * sums[channels + channel] * scale * affine.inverse[i] : 0;
  }
  for (std::int64_t k = 0; k < own.count; ++k) {
    const std::int64_t at = own.at + k * own.step;
    const Vector<E, width> gradients = load_vector<E, width>(g + at);
    Vector<E, width> values = load_vector<E, width>(x + at);
    for (int i = 0; i < width; ++i) {
      const float value = float(values[i]), kept = affine.kept(i, float(gradients[i]), value);
      values[i] = E(affine.factor[i] * kept - offset[i] - affine.centred(i, value) * slope[i]);
    }
    store_vector(to + at, values);
  }
}

}  // namespace

template <class E>
void launch_batch_statistics(std::int64_t rows, std::int64_t channels, const E* x, float* partials, float* to,
                             Stream stream) {
  if (channels == 0) return;
  launch_sum_columns<E>(ColumnThreads::over(channels, x), rows, channels, column_groups(rows),
                        MomentSource<E>{x}, partials, WriteStatistics{channels, to}, stream);
}

template <class E>
void launch_batch_norm(std::int64_t rows, std::int64_t channels, const E* x,
                       const BatchNormParameters<E>& parameters, const E* residual, E* y, Stream stream) {
  if (rows * channels == 0) return;
  const auto threads = ColumnThreads::over(channels, x, residual, y);
  with_width<E>(threads, [&](auto width) {
    launch(normalize<width(), E>, threads.grid(rows), threads.block, 0, stream, rows, channels, x, parameters,
           residual, y);
  });
}

template <class E>
void launch_batch_norm_sums(std::int64_t rows, std::int64_t channels, const E* g, const E* x,
                            const BatchNormParameters<E>& parameters, float* partials, float* to,
                            Stream stream) {
  if (channels == 0) return;
  launch_sum_columns<E>(ColumnThreads::over(channels, g, x), rows, channels, column_groups(rows),
                        GradientSumSource<E>{channels, g, x, parameters}, partials,
                        WriteGradientSums<E>{channels, parameters, to}, stream);
}

template <class E>
void launch_batch_norm_gradient(std::int64_t rows, std::int64_t channels, const E* g, const E* x,
                                const BatchNormParameters<E>& parameters, const float* sums, E* to,
                                Stream stream) {
  if (rows * channels == 0) return;
  const auto threads = ColumnThreads::over(channels, g, x, to);
  with_width<E>(threads, [&](auto width) {
    launch(gradient<width(), E>, threads.grid(rows), threads.block, 0, stream, rows, channels, g, x,
           parameters, sums, to);
  });
}

#define TAUT_INSTANTIATE(E)                                                                            \
  template void launch_batch_statistics(std::int64_t, std::int64_t, const E*, float*, float*, Stream); \
  template void launch_batch_norm(std::int64_t, std::int64_t, const E*, const BatchNormParameters<E>&, \
                                  const E*, E*, Stream);                                               \
  template void launch_batch_norm_sums(std::int64_t, std::int64_t, const E*, const E*,                 \
                                       const BatchNormParameters<E>&, float*, float*, Stream);         \
  template void launch_batch_norm_gradient(std::int64_t, std::int64_t, const E*, const E*,             \
                                           const BatchNormParameters<E>&, const float*, E*, Stream);
TAUT_INSTANTIATE(float)
TAUT_INSTANTIATE(bfloat16)
#undef TAUT_INSTANTIATE

}  // namespace taut::cuda
