#pragma once
// The moving average of a model's weights, which often is the better model (Polyak and Juditsky,
// "Acceleration of Stochastic Approximation by Averaging", 1992).

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../interpret/grad.hpp"
#include "../nn/model.hpp"

namespace taut::optim {

/// decay · average + (1 - decay) · weights of a model over `Grad<U>`, as a model over T: U, or the wide type
/// where U is too narrow for small changes. In the first steps the decay is less, (1 + steps) / (10 + steps),
/// so that the average does not remember the random start. Buffers, such as running statistics, are taken as
/// they are.
template <Model M> class Ema {
 public:
  using T = Widened<typename TensorOf<M>::Inner>;
  using Plain = decltype(rebind<T>(std::declval<const M&>()));

  /// Starts with the weights of now; `steps` are those already taken, as when training goes on from a
  /// checkpoint and the average is loaded into `model()`. Throws `Error` unless 0 <= decay < 1.
  Ema(const M& model, double decay, std::int64_t steps = 0)
      : average_(rebind<T>(model)), decay_(decay), steps_(steps) {
    if (!(decay >= 0 && decay < 1)) taut::detail::throw_error("Ema", "the decay must be from 0 to below 1");
  }

  /// Takes the model's weights of now into the average: after each step. Throws `ShapeError`, and changes
  /// nothing, if its tensors are not those of the model that the average was made of.
  void update(const M& model) {
    const auto now = rebind<T>(model);
    const auto weights = tensors(now);
    const auto averages = tensors(average_);
    require_same(averages, weights);
    const double steps = static_cast<double>(steps_++), decay = std::min(decay_, (1 + steps) / (10 + steps));
    std::size_t i = 0;
    taut::detail::walk(average_, [&](const taut::detail::FieldPath*, T& tensor, bool trained) {
      const T& weight = *weights[i++];
      tensor = trained && decay > 0 ? std::move(tensor) * decay + weight * (1 - decay) : weight;
    });
  }

  const Plain& model() const { return average_; }
  Plain& model() { return average_; }

 private:
  static std::vector<const T*> tensors(const Plain& model) {
    std::vector<const T*> result;
    taut::detail::walk(
        model, [&](const taut::detail::FieldPath*, const T& tensor, bool) { result.push_back(&tensor); });
    return result;
  }

  static void require_same(const std::vector<const T*>& averages, const std::vector<const T*>& weights) {
    if (averages.size() != weights.size())
      throw ShapeError("Ema: the model has other tensors than the average: expected " +
                       std::to_string(averages.size()) + ", got " + std::to_string(weights.size()));
    for (std::size_t i = 0; i < weights.size(); ++i)
      require(averages[i]->shape() == weights[i]->shape(), "Ema: the model has other shapes than the average",
              averages[i]->shape(), weights[i]->shape());
  }

  Plain average_;
  double decay_;
  std::int64_t steps_;
};

}  // namespace taut::optim
