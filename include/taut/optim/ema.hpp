#pragma once
// The moving average of a model's weights, which often is the better model (Polyak and Juditsky,
// "Acceleration of Stochastic Approximation by Averaging", 1992).

#include <algorithm>
#include <utility>
#include <vector>

#include "../interpret/grad.hpp"
#include "../nn/model.hpp"

namespace taut::optim {

/// decay · average + (1 - decay) · weights of a model over `Grad<T>`, as a model over T. In the first steps
/// the decay is less, (1 + steps) / (10 + steps), so that the average does not remember the random start.
/// Buffers, such as running statistics, are taken as they are.
template <Model M> class Ema {
 public:
  using T = typename TensorOf<M>::Inner;
  using Plain = decltype(rebind<T>(std::declval<const M&>()));

  /// Starts with the weights of now; `steps` are those already taken, as when training goes on from a
  /// checkpoint and the average is loaded into `model()`. Throws `Error` unless 0 <= decay < 1.
  Ema(const M& model, double decay, std::int64_t steps = 0)
      : average_(rebind<T>(model)), decay_(decay), steps_(steps) {
    if (!(decay >= 0 && decay < 1)) taut::detail::throw_error("Ema", "the decay must be from 0 to below 1");
  }

  /// Takes the model's weights of now into the average: after each step.
  void update(const M& model) {
    const double steps = static_cast<double>(steps_++), decay = std::min(decay_, (1 + steps) / (10 + steps));
    auto now = rebind<T>(model);
    std::vector<const T*> weights;
    taut::detail::walk(
        now, [&](const taut::detail::FieldPath*, const T& tensor, bool) { weights.push_back(&tensor); });
    std::size_t i = 0;
    taut::detail::walk(average_, [&](const taut::detail::FieldPath*, T& tensor, bool trained) {
      const T& weight = *weights[i++];
      tensor = trained ? std::move(tensor) * decay + weight * (1 - decay) : weight;
    });
  }

  const Plain& model() const { return average_; }
  Plain& model() { return average_; }

 private:
  Plain average_;
  double decay_;
  std::int64_t steps_;
};

}  // namespace taut::optim
