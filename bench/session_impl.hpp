#pragma once
// The definition of `make_session`, which session_<type>.cpp instantiate behind the header of its leaf.

#include <taut/data/data_loader.hpp>
#include <taut/io/model.hpp>
#include <taut/train/fit.hpp>

#include <algorithm>
#include <functional>
#include <utility>

#include "session.hpp"

namespace bench {

/// Steps that a device replays as a graph: a leaf that can do so specialises this.
template <class T> struct Captured {
  template <class Step> static Step of(const Step&, taut::optim::Optimizer&) {
    throw taut::Error("this device has no graphs");
  }
};

template <class T, class M> class SessionOf final : public Session {
 public:
  SessionOf(Start start, M network) : start_(std::move(start)), network_(std::move(network)) {
    if (!start_.weights.empty()) taut::io::load(network_, start_.weights);
    // Taken before the first step, which leaves what others share as it is.
    plain_ = taut::rebind<T>(network_);
    if constexpr (requires { taut::nn::fold_batch_norm(plain_); })
      if (start_.folded) plain_ = taut::nn::fold_batch_norm(std::move(plain_));
    optimizer_ = make_optimizer(start_.workload, network_);
    step_ = [this](const T& images, const Labels& labels) { return step(images, labels); };
    if (start_.captured) step_ = Captured<T>::of(step_, *optimizer_);
    for (const auto& [shape, values, labels] : std::exchange(start_.batches, {}))
      batches_.push_back({T::from_host(std::vector<Element>(values.begin(), values.end()), shape),
                          Labels::from_host(labels, {shape[0]})});
  }

  double train_step() override {
    const auto& [images, labels] = batches_[next_++ % batches_.size()];
    return static_cast<double>(step_(images, labels).item());
  }

  void infer(std::int64_t count) override {
    if (inputs_.shape().rank() == 0 || inputs_.shape()[0] != count) inputs_ = first_samples(count);
    logits_ = plain_(inputs_, taut::Mode::eval);
  }

  std::vector<double> logits() const override {
    const auto values = logits_.to_host();
    return {values.begin(), values.end()};
  }

  Pass train(const Images& images) override {
    taut::data::DataLoader loader{
        images, {.batch_size = start_.workload.batch, .workers = start_.workers, .first_epoch = passes_++}};
    const auto epoch = taut::train::fit(network_, *optimizer_, loader, {.epochs = 1}).back();
    return {images.size(), epoch.train_loss, epoch.train_accuracy};
  }

  Pass evaluate(const Images& images) override {
    taut::data::DataLoader loader{images, {.batch_size = 250, .shuffle = false, .workers = start_.workers}};
    const auto result = taut::train::evaluate(network_, loader);
    return {result.samples, result.loss, result.accuracy};
  }

 private:
  using Element = typename T::Element;
  using Labels = typename T::Index;

  taut::Widened<T> step(const T& images, const Labels& labels) {
    taut::Tape<T> tape;
    const auto logits = network_(taut::Grad<T>(images), taut::Mode::train);
    const auto loss = taut::cross_entropy(logits, labels);
    tape.backward(loss);
    optimizer_->step();
    return taut::train::detail::loss_to_log(taut::train::CrossEntropyLoss{}, logits.value(), loss.value(),
                                            labels);
  }

  T first_samples(std::int64_t count) const {
    const auto shape = start_.workload.batch_shape(count);
    const auto wanted = static_cast<std::size_t>(shape.size());
    std::vector<Element> values;
    for (std::size_t i = 0; values.size() < wanted; i = (i + 1) % batches_.size()) {
      const auto batch = batches_[i].first.to_host();
      values.insert(
          values.end(), batch.begin(),
          batch.begin() + static_cast<std::ptrdiff_t>(std::min(batch.size(), wanted - values.size())));
    }
    return T::from_host(values, shape);
  }

  Start start_;
  M network_;
  decltype(taut::rebind<T>(std::declval<M&>())) plain_;
  std::unique_ptr<taut::optim::Optimizer> optimizer_;
  std::function<taut::Widened<T>(const T&, const Labels&)> step_;
  std::vector<std::pair<T, Labels>> batches_;
  std::size_t next_ = 0;
  std::int64_t passes_ = 0;  // each in an order of its own
  T inputs_, logits_;
};

template <class T> std::unique_ptr<Session> make_session(Start start) {
  taut::Rng rng{1};
  return with_network<taut::Grad<T>>(start.workload, rng, [&](auto network) -> std::unique_ptr<Session> {
    return std::make_unique<SessionOf<T, decltype(network)>>(std::move(start), std::move(network));
  });
}

}  // namespace bench
