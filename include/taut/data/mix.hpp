#pragma once
// Augmentation of whole batches: each sample becomes a mixture of two, and so does its target.
//
//     for (const auto& batch : loader.epoch(epoch)) {
//       Rng rng = Rng{mix_seed}.fork(epoch).fork(batch.index);   // another seed than the loader's
//       const auto mixed = data::mixup(batch, 0.2, rng);
//       const auto logits = model(mixed.tensor<T>());
//       const auto loss = mixed.lambda * cross_entropy(logits, mixed.targets_a<T>()) +
//                         (1 - mixed.lambda) * cross_entropy(logits, mixed.targets_b<T>());
//     }
//
// With a generator made from the epoch and the batch's number, as here, a run that is resumed in mid-epoch
// mixes as the one that was never interrupted.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"
#include "batch_stream.hpp"

namespace taut::data {

/// A batch of B mixtures of two samples. The target of a mixture is `labels_a` by the share `lambda` and
/// `labels_b` by the rest, so its loss is lambda loss(a) + (1 - lambda) loss(b).
struct MixedBatch {
  std::vector<float> values;  ///< `shape.size()` values in row-major order
  Shape shape;                ///< [B, sample shape...]
  std::vector<std::int64_t> labels_a, labels_b;
  float lambda = 1;  ///< from 0 to 1

  /// The values as a tensor of shape [B, sample shape...].
  template <class T> T tensor() const { return view(labels_a).tensor<T>(); }

  /// The labels as tensors of integers, `T::Index`, of shape [B].
  template <class T> typename T::Index targets_a() const { return view(labels_a).targets<T>(); }
  template <class T> typename T::Index targets_b() const { return view(labels_b).targets<T>(); }

 private:
  Batch view(std::span<const std::int64_t> labels) const { return {values, shape, labels, {}, 0}; }
};

namespace detail {

// The logarithm of a number from the gamma distribution of shape `alpha` and scale 1, since the number itself
// may be too small to represent. Source: G. Marsaglia, W. Tsang, "A Simple Method for Generating Gamma
// Variables", 2000, with the section on shapes below 1.
inline double log_gamma_variate(double alpha, Rng& rng) {
  if (alpha < 1) {
    const double boost = std::log(1 - rng.uniform()) / alpha;
    return log_gamma_variate(alpha + 1, rng) + boost;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double log_v = 3 * std::log(root);
    if (std::log(1 - rng.uniform()) < 0.5 * x * x + d * (1 - std::exp(log_v) + log_v))
      return std::log(d) + log_v;
  }
}

// A number from the beta distribution with both parameters `alpha`.
inline double beta_variate(const char* function, double alpha, Rng& rng) {
  if (!(alpha > 0) || std::isinf(alpha)) {
    throw Error(std::string(function) + ": expected a positive finite alpha, got " + std::to_string(alpha));
  }
  const double a = log_gamma_variate(alpha, rng), b = log_gamma_variate(alpha, rng);
  return 1 / (1 + std::exp(b - a));
}

// `labels_b` and their rows come from the batch in a random order, which is returned.
inline std::vector<std::int64_t> pair_up(const Batch& batch, Rng& rng, MixedBatch& mixed) {
  auto partners = rng.permutation(batch.size());
  mixed.shape = batch.shape;
  mixed.labels_a.assign(batch.labels.begin(), batch.labels.end());
  for (const auto partner : partners)
    mixed.labels_b.push_back(batch.labels[static_cast<std::size_t>(partner)]);
  return partners;
}

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// A random range of about `share` of an extent, cut off at its ends.
inline Range random_range(std::int64_t extent, double share, Rng& rng) {
  const auto half = static_cast<std::int64_t>(static_cast<double>(extent) * share) / 2;
  const auto centre = static_cast<std::int64_t>(rng.integer(static_cast<std::uint64_t>(extent)));
  return {std::max<std::int64_t>(centre - half, 0), std::min(centre + half, extent)};
}

}  // namespace detail

/// Blends each sample with a random one of the batch: lambda x_i + (1 - lambda) x_j, with one lambda from
/// Beta(alpha, alpha) for the batch and j a random permutation. Source: H. Zhang, M. Cisse, Y. Dauphin, D.
/// Lopez-Paz, "mixup: Beyond Empirical Risk Minimization", 2017, who take an alpha of 0.2 for ImageNet and 1
/// for CIFAR-10. Throws `Error` if `alpha` is not positive.
inline MixedBatch mixup(const Batch& batch, double alpha, Rng& rng) {
  MixedBatch mixed;
  mixed.lambda = static_cast<float>(detail::beta_variate("mixup", alpha, rng));
  const auto partners = detail::pair_up(batch, rng, mixed);
  mixed.values.resize(batch.values.size());
  const auto size = batch.values.size() / partners.size();
  const float a = mixed.lambda, b = 1 - a;
  for (std::size_t row = 0; row < partners.size(); ++row) {
    const auto own = batch.values.subspan(row * size, size);
    const auto other = batch.values.subspan(static_cast<std::size_t>(partners[row]) * size, size);
    std::ranges::transform(own, other, mixed.values.begin() + static_cast<std::ptrdiff_t>(row * size),
                           [a, b](float x, float y) { return a * x + b * y; });
  }
  return mixed;
}

/// Replaces a rectangle of each image by the same one of a random image of the batch. The rectangle is the
/// same for the whole batch; its sides are sqrt(1 - lambda) of the image's with lambda from Beta(alpha,
/// alpha), its centre is any pixel, and what is outside the image is cut off; `lambda` is then the share of
/// the pixels that stay. Source: S. Yun, D. Han, S. Oh, S. Chun, J. Choe, Y. Yoo, "CutMix: Regularization
/// Strategy to Train Strong Classifiers with Localizable Features", 2019, who take an alpha of 1. Throws
/// `Error` if `alpha` is not positive, and `ShapeError` if the samples are not of shape [channels, height,
/// width].
inline MixedBatch cutmix(const Batch& batch, double alpha, Rng& rng) {
  require(batch.shape.rank() == 4, "cutmix", "expected images of shape [batch, channels, height, width], got",
          batch.shape);
  MixedBatch mixed;
  const auto side = std::sqrt(1 - detail::beta_variate("cutmix", alpha, rng));
  const auto partners = detail::pair_up(batch, rng, mixed);
  const auto height = batch.shape[2], width = batch.shape[3];
  const auto rows = detail::random_range(height, side, rng), columns = detail::random_range(width, side, rng);

  mixed.values.assign(batch.values.begin(), batch.values.end());
  const auto place = [&](std::int64_t image, std::int64_t channel, std::int64_t y) {
    return ((image * batch.shape[1] + channel) * height + y) * width + columns.begin;
  };
  for (std::int64_t image = 0; image < batch.size(); ++image) {
    const auto partner = partners[static_cast<std::size_t>(image)];
    for (std::int64_t channel = 0; channel < batch.shape[1]; ++channel) {
      for (auto y = rows.begin; y < rows.end; ++y) {
        std::copy_n(batch.values.begin() + place(partner, channel, y), columns.size(),
                    mixed.values.begin() + place(image, channel, y));
      }
    }
  }
  mixed.lambda = 1 - static_cast<float>(rows.size() * columns.size()) / static_cast<float>(height * width);
  return mixed;
}

}  // namespace taut::data
