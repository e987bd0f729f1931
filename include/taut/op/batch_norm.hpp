#pragma once
// Batch normalisation (Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by
// Reducing Internal Covariate Shift", 2015), alone and fused with the residual addition and the ReLU that
// follow it in residual networks. Group and instance normalisation are compositions.
//
// Means, variances and the sums that gradients take are of the type `Widened<T>`: an image stored in 16 bits
// is normalised by statistics in 32. Weight and bias are T's, as all parameters are; an optimizer keeps their
// float masters.

#include <array>
#include <string_view>

#include "arithmetic.hpp"
#include "compare.hpp"
#include "convert.hpp"
#include "movement.hpp"
#include "partial.hpp"
#include "reduce.hpp"
#include "unary.hpp"
#include "widened.hpp"

namespace taut {

namespace detail {

/// [c] as a shape that broadcasts over [n, c, ...].
constexpr Shape along_channels(const Shape& x) {
  Shape to;
  for (int i = 1; i < x.rank(); ++i) to.push_back(i == 1 ? x[1] : 1);
  return to;
}

/// All axes of [n, c, ...] but the channels'.
constexpr Axes all_but_channels(const Shape& x) {
  Axes axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

/// How many elements of [n, c, ...] a channel has.
constexpr std::int64_t channel_size(const Shape& x) {
  std::int64_t n = x[0];
  for (int i = 2; i < x.rank(); ++i) n *= x[i];
  return n;
}

}  // namespace detail

namespace op {

/// The mean and the biased variance of each channel of x [n, c, ...]: [2, c], a `Widened<T>`. Constants to
/// derivatives: `BatchNorm` accounts for how they depend on x.
struct BatchStatistics {
  static constexpr std::string_view name = "batch_statistics";
  static constexpr std::uint32_t constant_operands = 1;

  constexpr Shape shape(const Shape& x) const {
    require(x.rank() >= 2, "batch_statistics: takes [n, c, ...]", x);
    require(detail::channel_size(x) > 0 || x[1] == 0, "batch_statistics: the channels have no elements", x);
    return {2, x[1]};
  }
  constexpr std::int64_t flops(const Shape& x) const { return 3 * x.size(); }
  template <AnyTensor T> T decompose(const T& x) const {
    const T m = mean(x, detail::all_but_channels(x.shape()), true);
    const T variance = mean(square(x - m), detail::all_but_channels(x.shape()));
    return concat(0, reshape(m, {1, x.shape()[1]}), reshape(variance, {1, x.shape()[1]}));
  }
};

/// What the operators of batch normalisation have in common.
struct BatchNormOptions {
  double eps = 1e-5;  ///< added to the variance
  bool relu = false;  ///< negative results become 0
  bool batch = true;  ///< the statistics are x's own; else they are constants
  constexpr bool operator==(const BatchNormOptions&) const = default;

  constexpr void require_shapes(std::string_view name, const Shape& x, const Shape& weight, const Shape& bias,
                                const Shape& statistics) const {
    require(x.rank() >= 2, name, "takes [n, c, ...]", x);
    require(weight == Shape{x[1]} && bias == weight, name,
            "weight and bias must have one element for each channel", x, weight, bias);
    require(statistics == Shape{2, x[1]}, name, "the statistics must be [2, channels]", statistics, x);
  }

  /// x̂ = (x - mean) / √(variance + eps) and 1 / √(variance + eps), of which derivatives see how the
  /// statistics depend on x.
  template <AnyTensor T> std::array<T, 2> normalize(const T& x, const T& statistics) const {
    const T own = batch ? BatchStatistics{}.decompose(x) : statistics;
    const Shape channel = detail::along_channels(x.shape());
    const T scale = 1.0 / sqrt(reshape(slice(own, 0, 1, 2), channel) + eps);
    return {(x - reshape(slice(own, 0, 0, 1), channel)) * scale, scale};
  }
};

/// Σ g and Σ g x̂ of each channel: [2, c], a `Widened<T>`, for g of the shape of x [n, c, ...]. Where `relu`
/// cut off a result of `BatchNorm`, g counts as 0.
struct BatchNormSums {
  static constexpr std::string_view name = "batch_norm_sums";
  static constexpr std::uint32_t constant_operands = 1 << 4;
  BatchNormOptions options;

  constexpr Shape shape(const Shape& g, const Shape& x, const Shape& weight, const Shape& bias,
                        const Shape& statistics) const {
    options.require_shapes(name, x, weight, bias, statistics);
    require(g == x, name, "the gradient is not of the result's shape", g, x);
    return statistics;
  }
  constexpr std::int64_t flops(const Shape& g, const Shape&, const Shape&, const Shape&, const Shape&) const {
    return 5 * g.size();
  }
  template <AnyTensor T>
  T decompose(const T& g, const T& x, const T& weight, const T& bias, const T& statistics) const {
    const Axes axes = detail::all_but_channels(x.shape());
    const T normal = options.normalize(x, statistics)[0];
    const T kept = options.relu ? masked(g, normal, weight, bias) : g;
    return concat(0, reshape(sum(kept, axes), {1, x.shape()[1]}),
                  reshape(sum(kept * normal, axes), {1, x.shape()[1]}));
  }

  /// g where the result is positive.
  template <AnyTensor T> static T masked(const T& g, const T& normal, const T& weight, const T& bias) {
    const Shape channel = detail::along_channels(g.shape());
    return g * gt(normal * reshape(weight, channel) + reshape(bias, channel), 0.0);
  }
};

/// The gradient of `BatchNorm` by x: with m elements a channel
///
///     weight / √(variance + eps) (g - Σg / m - x̂ Σ(g x̂) / m),
///
/// where `sums` has Σg and Σ(g x̂); without the sums where the statistics are constants.
struct BatchNormGradient {
  static constexpr std::string_view name = "batch_norm_gradient";
  static constexpr std::uint32_t constant_operands = 1 << 4;
  BatchNormOptions options;

  constexpr Shape shape(const Shape& g, const Shape& x, const Shape& weight, const Shape& bias,
                        const Shape& statistics, const Shape& sums) const {
    options.require_shapes(name, x, weight, bias, statistics);
    require(g == x && sums == statistics, name, "the gradient is not of the result's shape", g, x);
    return x;
  }
  constexpr std::int64_t flops(const Shape& g, const Shape&, const Shape&, const Shape&, const Shape&,
                               const Shape&) const {
    return 8 * g.size();
  }
  template <AnyTensor T>
  T decompose(const T& g, const T& x, const T& weight, const T& bias, const T& statistics,
              const T& sums) const {
    const Shape channel = detail::along_channels(x.shape());
    const auto [normal, scale] = options.normalize(x, statistics);
    const T kept = options.relu ? BatchNormSums::masked(g, normal, weight, bias) : g;
    const T factor = reshape(weight, channel) * scale;
    if (!options.batch) return kept * factor;
    const double m = static_cast<double>(detail::channel_size(x.shape()));
    const T of_g = reshape(slice(sums, 0, 0, 1), channel), of_normal = reshape(slice(sums, 0, 1, 2), channel);
    return factor * (kept - (of_g + normal * of_normal) / m);
  }
};

/// weight x̂ + bias of x [n, c, ...], with x̂ = (x - mean) / √(variance + eps), of which `statistics` [2, c]
/// are `BatchStatistics` of x, or constants; weight and bias are [c].
struct BatchNorm {
  static constexpr std::string_view name = "batch_norm";
  static constexpr std::uint32_t constant_operands = 1 << 3;
  BatchNormOptions options;

  constexpr Shape shape(const Shape& x, const Shape& weight, const Shape& bias,
                        const Shape& statistics) const {
    options.require_shapes(name, x, weight, bias, statistics);
    return x;
  }
  constexpr std::int64_t flops(const Shape& x, const Shape&, const Shape&, const Shape&) const {
    return 2 * x.size();
  }
  template <AnyTensor T>
  auto pullback(Needs<4> needs, const T&, const T& x, const T& weight, const T& bias,
                const Widened<T>& statistics) const {
    return [options = options, needs, x, weight, bias, statistics](const T& g) {
      std::array<T, 4> gradients;
      const Widened<T> sums = eval(BatchNormSums{options}, g, x, weight, bias, statistics);
      if (needs[0]) gradients[0] = eval(BatchNormGradient{options}, g, x, weight, bias, statistics, sums);
      if (!needs[1] && !needs[2]) return gradients;
      const T rounded = convert<T>(sums);
      if (needs[1]) gradients[1] = reshape(slice(rounded, 0, 1, 2), weight.shape());
      if (needs[2]) gradients[2] = reshape(slice(rounded, 0, 0, 1), weight.shape());
      return gradients;
    };
  }
  template <AnyTensor T> T decompose(const T& x, const T& weight, const T& bias, const T& statistics) const {
    const Shape channel = detail::along_channels(x.shape());
    const T y = options.normalize(x, statistics)[0] * reshape(weight, channel) + reshape(bias, channel);
    return options.relu ? relu(y) : y;
  }
};

/// relu(batch_norm(x) + residual) in one pass, for x and residual [n, c, ...]. `options.relu` has no effect:
/// the ReLU is after the addition.
struct BatchNormAddRelu {
  static constexpr std::string_view name = "batch_norm_add_relu";
  static constexpr std::uint32_t constant_operands = 1 << 3;
  BatchNormOptions options;

  constexpr BatchNorm norm() const { return {{.eps = options.eps, .relu = false, .batch = options.batch}}; }
  constexpr Shape shape(const Shape& x, const Shape& weight, const Shape& bias, const Shape& statistics,
                        const Shape& residual) const {
    options.require_shapes(name, x, weight, bias, statistics);
    require(residual == x, name, "the residual is not of the input's shape", residual, x);
    return x;
  }
  constexpr std::int64_t flops(const Shape& x, const Shape&, const Shape&, const Shape&, const Shape&) const {
    return 3 * x.size();
  }
  template <AnyTensor T>
  auto pullback(Needs<5> needs, const T& out, const T& x, const T& weight, const T& bias,
                const Widened<T>& statistics, const T&) const {
    return [rule = norm().pullback(Needs<4>{needs.bits & 15}, out, x, weight, bias, statistics), needs,
            out](const T& g) {
      const T kept = eval(PartialFromOutput<Relu>{}, g, out);
      std::array<T, 5> gradients;
      if (needs.bits & 15) {
        auto own = rule(kept);
        for (std::size_t i = 0; i < 4; ++i) gradients[i] = std::move(own[i]);
      }
      if (needs[4]) gradients[4] = kept;
      return gradients;
    };
  }
  template <AnyTensor T>
  T decompose(const T& x, const T& weight, const T& bias, const T& statistics, const T& residual) const {
    return relu(norm().decompose(x, weight, bias, statistics) + residual);
  }
};

}  // namespace op

/// The mean and the biased variance Σ (x - mean)² / m of each channel of x [n, c, ...], with m elements a
/// channel: [2, c], a `Widened<X>`. Constants to derivatives. Throws `ShapeError` if the channels have no
/// elements.
template <AnyTensor X> constexpr auto batch_statistics(const X& x) { return eval(op::BatchStatistics{}, x); }

/// weight (x - mean) / √(variance + eps) + bias of x [n, c, ...] by its own statistics, with weight and bias
/// [c], as PyTorch's `batch_norm` in training; with `relu`, negative results become 0. Derivatives include
/// those of the statistics by x. Throws `ShapeError` if the operands do not fit.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto batch_norm(const X& x, const W& weight, const B& bias, op::BatchNormOptions options = {}) {
  options.batch = true;
  return eval(op::BatchNorm{options}, x, weight, bias, batch_statistics(x));
}

/// The same by constant statistics [2, c], means and variances in a `Widened<X>`, as PyTorch's `batch_norm`
/// in evaluation.
template <AnyTensor X, AnyTensor W, AnyTensor B, AnyTensor S>
constexpr auto batch_norm_by(const S& statistics, const X& x, const W& weight, const B& bias,
                             op::BatchNormOptions options = {}) {
  options.batch = false;
  return eval(op::BatchNorm{options}, x, weight, bias, statistics);
}

/// relu(batch_norm(x, weight, bias) + residual) in one pass, for x and residual [n, c, ...].
template <AnyTensor X, AnyTensor W, AnyTensor B, AnyTensor R>
constexpr auto batch_norm_add_relu(const X& x, const W& weight, const B& bias, const R& residual,
                                   op::BatchNormOptions options = {}) {
  options.batch = true;
  return eval(op::BatchNormAddRelu{options}, x, weight, bias, batch_statistics(x), residual);
}

/// x [n, c, ...] normalised over each sample's groups of c / groups channels, times weight [c] plus bias [c]
/// (Wu and He, "Group Normalization", 2018). Throws `ShapeError` if the groups do not divide the channels.
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto group_norm(const X& x, std::int64_t groups, const W& weight, const B& bias,
                          double eps = 1e-5) {
  const Shape from = x.shape(), channel = detail::along_channels(from);
  require(from.rank() >= 2 && groups >= 1 && from[1] % groups == 0,
          "group_norm: takes [n, c, ...] and a number of groups that divides c", from);
  const auto rows =
      reshape(x, {from[0], groups, from[1] == 0 || from[0] == 0 ? 0 : from.size() / from[0] / groups});
  const auto centred = rows - mean(rows, {2}, true);
  const auto normal = centred / sqrt(mean(square(centred), {2}, true) + eps);
  return reshape(normal, from) * reshape(weight, channel) + reshape(bias, channel);
}

/// Each channel of each sample of x [n, c, ...] normalised alone, times weight [c] plus bias [c] (Ulyanov et
/// al., "Instance Normalization: The Missing Ingredient for Fast Stylization", 2016).
template <AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto instance_norm(const X& x, const W& weight, const B& bias, double eps = 1e-5) {
  return group_norm(x, x.shape()[1], weight, bias, eps);
}

}  // namespace taut
