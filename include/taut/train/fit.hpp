#pragma once
// `fit`, the training loop that most programs write, and `evaluate`, the measurement of a model.
//
// One step is what one would write by hand:
//
//     Tape<T> tape;
//     const auto loss = cross_entropy(model(batch.tensor<T>()), batch.targets<T>());
//     tape.backward(loss);
//     optimizer.step();

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "../core/mode.hpp"
#include "../interpret/grad.hpp"
#include "../nn/model.hpp"
#include "../op/convert.hpp"
#include "../op/cross_entropy.hpp"
#include "../op/reduce.hpp"
#include "../optim/optimizer.hpp"
#include "callback.hpp"
#include "clock.hpp"

namespace taut::train {

/// The mean cross-entropy of logits [n, classes] and labels [n].
struct CrossEntropyLoss {
  template <AnyTensor X, AnyTensor Labels> auto operator()(const X& logits, const Labels& labels) const {
    return cross_entropy(logits, labels);
  }
};

/// Gives batches when it is looped over, an epoch each time, as `data::DataLoader` does. A batch has
/// `tensor<T>()`, `targets<T>()`, `labels` and `size()`.
template <class L>
concept Loader = requires(L& loader) {
  (*loader.begin()).labels;
  (*loader.begin()).size();
  loader.end();
};

/// How `fit` trains. A rate given as a function, such as a schedule of `optim/schedule.hpp`, is set on the
/// optimizer; otherwise the optimizer keeps its own.
///
/// `Loss` is called with the model's outputs and the batch's targets, and gives a scalar: the mean over the
/// batch. It is called with `Grad<T>` outputs in training and with plain ones in evaluation, so its call is a
/// template.
template <class Loss = CrossEntropyLoss> struct FitOptions {
  int epochs = 1;  ///< passes over the training data, those already done included
  int epochs_done =
      0;  ///< as when training goes on from a checkpoint; epochs and steps are counted from there
  std::function<double(std::int64_t)> lr_by_epoch{};  ///< the learning rate of an epoch, counted from 0
  std::function<double(std::int64_t)> lr_by_step{};   ///< the learning rate of a step, counted from 0
  bool accuracy = true;           ///< count the rows of outputs [n, classes] whose largest is the label's
  bool allow_non_finite = false;  ///< go on with a loss that is NaN or infinite, instead of an `Error`
  Loss loss{};
};

/// What a model achieves on some data. Means over samples; the accuracy, a fraction from 0 to 1, is NaN where
/// the outputs are not [n, classes].
struct Evaluation {
  double loss = not_measured;
  double accuracy = not_measured;
  std::int64_t samples = 0;
};

namespace detail {

template <class M, class T> auto forward(M& model, const T& x, Mode mode) {
  if constexpr (requires { model(x, mode); })
    return model(x, mode);
  else
    return model(x);
}

/// The fraction of labels that were predicted; not measured if there are no predictions.
inline double accuracy(std::span<const std::int64_t> predictions, std::span<const std::int64_t> labels) {
  if (predictions.empty()) return not_measured;
  std::int64_t right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) right += predictions[i] == labels[i];
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

/// Enters the loss and, if wanted, the accuracy in the event. All is computed before any of it is read: the
/// host waits for a device once.
template <AnyTensor T, AnyTensor W>
void measure(const T& outputs, const W& loss, std::span<const std::int64_t> labels, bool with_accuracy,
             BatchEvent& event) {
  const bool classifies = with_accuracy && outputs.shape().rank() == 2 &&
                          outputs.shape()[0] == static_cast<std::int64_t>(labels.size());
  const typename T::Index predictions = classifies ? argmax(outputs, 1) : typename T::Index{};
  event.loss = static_cast<double>(loss.item());
  event.accuracy = accuracy(predictions.to_host(), labels);
}

template <class L> std::int64_t batch_count(const L& loader) {
  if constexpr (requires { loader.batches_per_epoch(); })
    return loader.batches_per_epoch();
  else
    return 0;  // not known
}

/// One pass over a loader: `work(batch, event)` does what the pass is for and enters loss and accuracy in the
/// event, of which the callbacks are told. Sets `stop` and ends early if one of them wants to.
template <class L, class Work, class... Cs>
Evaluation run_pass(L& loader, BatchEvent event, bool& stop, const Work& work, Cs&... callbacks) {
  RunningMean loss, accuracy;
  event.batch = 0;
  event.batches = batch_count(loader);
  for (const auto& batch : loader) {
    ++event.batch;
    event.samples = batch.size();
    work(batch, event);
    loss.add(event.loss, event.samples);
    accuracy.add(event.accuracy, event.samples);
    if (notify(event, callbacks...)) {
      stop = true;
      break;
    }
  }
  return {loss.value(), accuracy.value(), loss.samples()};
}

/// The loss with float's digits: of narrow outputs it is computed again of the widened ones.
template <class Loss, AnyTensor T, AnyTensor Targets>
Widened<T> loss_to_log(const Loss& function, const T& outputs, const T& loss, const Targets& targets) {
  if constexpr (std::same_as<T, Widened<T>>)
    return loss;
  else
    return function(widen(outputs), targets);
}

inline void require_finite(const BatchEvent& event) {
  if (std::isfinite(event.loss)) return;
  throw Error(
      "fit: the loss is " + std::string(std::isnan(event.loss) ? "NaN" : "infinite") + " in epoch " +
      std::to_string(event.epoch) + ", batch " + std::to_string(event.batch) +
      "; lower the learning rate, clip the gradients by set_clip_norm, or look for infinite values in "
      "the data (the model keeps the weights it had before this batch)");
}

/// One step. The loss is read before the update, so that a step that failed changes no weight.
template <class M, class Loss, class Batch>
void train_batch(M& model, optim::Optimizer& optimizer, const FitOptions<Loss>& options, const Batch& batch,
                 BatchEvent& event) {
  using T = typename TensorOf<M>::Inner;
  Tape<T> tape;
  const Grad<T> outputs = forward(model, Grad<T>(batch.template tensor<T>()), Mode::train);
  const auto targets = batch.template targets<T>();
  const Grad<T> loss = options.loss(outputs, targets);
  tape.backward(loss);
  measure(outputs.value(), loss_to_log(options.loss, outputs.value(), loss.value(), targets), batch.labels,
          options.accuracy, event);
  if (!options.allow_non_finite) require_finite(event);
  optimizer.step();
}

/// Measures a model over plain tensors, with which nothing can be recorded.
template <class M, class L, class Loss, class... Cs>
Evaluation evaluate_plain(const M& model, L& loader, const FitOptions<Loss>& options, const BatchEvent& event,
                          bool& stop, Cs&... callbacks) {
  using T = TensorOf<M>;
  const auto work = [&](const auto& batch, BatchEvent& measured) {
    const T outputs = forward(model, batch.template tensor<T>(), Mode::eval);
    const Widened<T> loss = options.loss(widen(outputs), batch.template targets<T>());
    measure(outputs, loss, batch.labels, options.accuracy, measured);
  };
  return run_pass(loader, event, stop, work, callbacks...);
}

/// The same for a model over any tensors: one that is trained is measured with the weights that it has now.
template <class M, class L, class Loss, class... Cs>
Evaluation evaluate_any(const M& model, L& loader, const FitOptions<Loss>& options, const BatchEvent& event,
                        bool& stop, Cs&... callbacks) {
  if constexpr (is_grad<TensorOf<M>>)
    return evaluate_plain(rebind<typename TensorOf<M>::Inner>(model), loader, options, event, stop,
                          callbacks...);
  else
    return evaluate_plain(model, loader, options, event, stop, callbacks...);
}

template <class Loss> void check(const FitOptions<Loss>& options) {
  if (options.epochs < 0)
    throw Error("fit: expected epochs to be at least 0, got " + std::to_string(options.epochs));
  if (options.epochs_done < 0)
    throw Error("fit: expected epochs_done to be at least 0, got " + std::to_string(options.epochs_done));
  if (options.lr_by_epoch && options.lr_by_step)
    throw Error("fit: expected one of lr_by_epoch and lr_by_step, got both");
}

/// Trains for an epoch and measures it, but for the test data.
template <class M, class L, class Loss, class... Cs>
EpochResult train_epoch(M& model, optim::Optimizer& optimizer, L& loader, const FitOptions<Loss>& options,
                        const BatchEvent& event, std::int64_t& step, bool& stop, Cs&... callbacks) {
  if (options.lr_by_epoch) optimizer.set_learning_rate(options.lr_by_epoch(event.epoch - 1));
  const auto work = [&](const auto& batch, BatchEvent& measured) {
    if (options.lr_by_step) optimizer.set_learning_rate(options.lr_by_step(step));
    train_batch(model, optimizer, options, batch, measured);
    ++step;
  };
  const double begin = steady_seconds();
  const Evaluation train = run_pass(loader, event, stop, work, callbacks...);
  if (train.samples == 0) throw Error("fit: the loader of the training data gave no batch");
  EpochResult result{.epoch = event.epoch, .train_loss = train.loss, .train_accuracy = train.accuracy};
  result.learning_rate = optimizer.learning_rate();
  result.seconds = steady_seconds() - begin;
  result.samples_per_second = static_cast<double>(train.samples) / result.seconds;
  return result;
}

/// The loop over the epochs. `test(event, stop)` measures the test data, if there are any.
template <class M, class L, class Loss, class Test, class... Cs>
History run_epochs(M& model, optim::Optimizer& optimizer, L& loader, const FitOptions<Loss>& options,
                   const Test& test, Cs&... callbacks) {
  check(options);
  History history;
  if (options.epochs_done >= options.epochs) return history;
  std::int64_t step = batch_count(loader) * options.epochs_done;
  if (options.epochs_done > 0 && options.lr_by_step && step == 0)
    throw Error("fit: lr_by_step after epochs_done needs a loader that knows its batches_per_epoch");
  bool stop = false;
  for (int epoch = options.epochs_done + 1; epoch <= options.epochs && !stop; ++epoch) {
    BatchEvent event{.phase = Phase::train, .epoch = epoch, .epochs = options.epochs};
    EpochResult result = train_epoch(model, optimizer, loader, options, event, step, stop, callbacks...);
    event.phase = Phase::test;
    const Evaluation tested = test(event, stop);
    result.test_loss = tested.loss;
    result.test_accuracy = tested.accuracy;
    stop |= notify(result, callbacks...);
    history.push_back(result);
  }
  return history;
}

}  // namespace detail

/// The mean loss and the accuracy of a model on one pass over a loader, by the same loss and options as
/// `fit`'s. Nothing is recorded: a model over `Grad<T>` is measured as one over T.
template <Model M, Loader L, class Loss = CrossEntropyLoss>
Evaluation evaluate(const M& model, L&& loader, const FitOptions<Loss>& options = {}) {
  bool stop = false;
  return detail::evaluate_any(model, loader, options, {.phase = Phase::test}, stop);
}

/// Trains a model over `Grad<T>` for `options.epochs` epochs, and gives the record of each:
///
///     optim::Sgd sgd{model, {.lr = 0.01, .momentum = 0.9}};
///     train::fit(model, sgd, train_loader, test_loader,
///                {.epochs = 10, .lr_by_epoch = optim::StepSchedule{0.01, 5, 0.5}}, bar, log);
///
/// The test data, if given, are evaluated after each epoch. Callbacks are told of each batch and each epoch,
/// in their order. If one returns `Control::stop`, the others still hear of the same event, and the training
/// ends with this epoch: at once, if it was a batch's, and what was measured so far is reported.
///
/// Throws `Error` if the loss is not finite (the model then keeps its weights of before that batch), if
/// options contradict or no batch comes. What the data, the model and callbacks throw passes through.
template <Model M, Loader L, class Loss = CrossEntropyLoss, class... Cs>
requires(is_grad<TensorOf<M>> && (Callback<Cs> && ...)) History
    fit(M& model, optim::Optimizer& optimizer, L&& train_loader, const FitOptions<Loss>& options = {},
        Cs&&... callbacks) {
  const auto no_test = [](const BatchEvent&, bool&) { return Evaluation{}; };
  return detail::run_epochs(model, optimizer, train_loader, options, no_test, callbacks...);
}

/// The same with test data.
template <Model M, Loader L, Loader Test, class Loss = CrossEntropyLoss, class... Cs>
requires(is_grad<TensorOf<M>> && (Callback<Cs> && ...)) History
    fit(M& model, optim::Optimizer& optimizer, L&& train_loader, Test&& test_loader,
        const FitOptions<Loss>& options = {}, Cs&&... callbacks) {
  const auto test = [&](const BatchEvent& event, bool& stop) {
    return detail::evaluate_any(model, test_loader, options, event, stop, callbacks...);
  };
  return detail::run_epochs(model, optimizer, train_loader, options, test, callbacks...);
}

}  // namespace taut::train
