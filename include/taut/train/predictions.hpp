#pragma once
// What a classifier makes of a data set, sample by sample.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"

namespace taut::train {

/// The predictions for samples, in the order in which they were added:
///
///     train::Predictions predictions;
///     for (const auto& batch : loader)  // that does not shuffle
///       predictions.add(model(batch.tensor<CpuArray>()).to_host(), batch.labels);
struct Predictions {
  std::vector<std::int64_t> labels;           ///< the true classes
  std::vector<std::int64_t> predicted;        ///< the most probable ones
  std::vector<double> label_probability;      ///< of the true class
  std::vector<double> predicted_probability;  ///< of the most probable one

  std::size_t size() const { return labels.size(); }

  /// Adds samples by their logits [n, classes] and labels [n]. The probabilities are their softmax, in double
  /// precision. Throws `ShapeError` if the logits are not as many for each label, `Error` if a label is not
  /// one of the classes.
  void add(std::span<const float> logits, std::span<const std::int64_t> batch_labels) {
    if (batch_labels.empty() && logits.empty()) return;
    if (batch_labels.empty() || logits.empty() || logits.size() % batch_labels.size() != 0)
      throw ShapeError("Predictions::add: expected the same number of logits for each label, got " +
                       std::to_string(logits.size()) + " for " + std::to_string(batch_labels.size()) +
                       " labels");
    const std::size_t classes = logits.size() / batch_labels.size();
    for (const auto label : batch_labels) require_class(label, classes);
    for (std::size_t i = 0; i < batch_labels.size(); ++i)
      add_one(logits.subspan(i * classes, classes), batch_labels[i]);
  }

  /// The indices of up to `count` samples whose true class was thought least probable, the worst first.
  std::vector<std::size_t> worst(std::size_t count) const {
    std::vector<std::size_t> order(size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, size()));
    std::partial_sort(order.begin(), middle, order.end(), [this](std::size_t a, std::size_t b) {
      return badness(a) != badness(b) ? badness(a) > badness(b) : a < b;
    });
    order.erase(middle, order.end());
    return order;
  }

 private:
  static void require_class(std::int64_t label, std::size_t classes) {
    if (label >= 0 && label < static_cast<std::int64_t>(classes)) return;
    throw Error("Predictions::add: expected labels from 0 to " + std::to_string(classes - 1) + ", got " +
                std::to_string(label));
  }

  void add_one(std::span<const float> logits, std::int64_t label) {
    const auto best = std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit) - *best);
    labels.push_back(label);
    predicted.push_back(best - logits.begin());
    label_probability.push_back(
        std::exp(static_cast<double>(logits[static_cast<std::size_t>(label)]) - *best) / total);
    predicted_probability.push_back(1 / total);
  }

  // NaN, of a model that has diverged, is as bad as can be.
  double badness(std::size_t i) const {
    return std::isnan(label_probability[i]) ? 2.0 : 1.0 - label_probability[i];
  }
};

}  // namespace taut::train
