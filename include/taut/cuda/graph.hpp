#pragma once
// `capture`: a training step that the device repeats by itself, as a CUDA graph. Launching the hundreds of
// kernels of a step one by one takes the host longer than a device takes to run small ones; a graph is
// launched as a whole.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../optim/optimizer.hpp"
#include "recording.hpp"
#include "tensor.hpp"

namespace taut::cuda {

namespace detail {

/// Where a result of a captured step lies after each replay.
template <class E> struct Output {
  const E* data;
  Shape shape;
  Layout layout;

  explicit Output(const BasicCudaTensor<E>& x) : data(x.data()), shape(x.shape()), layout(x.layout()) {}

  BasicCudaTensor<E> copy() const {
    auto to = BasicCudaTensor<E>::uninitialized(shape, layout);
    copy_on_device(to.mutable_data(), data, to.bytes(), current_stream());
    return to;
  }
};

/// The results of a step, of which there may be none, one or a tuple, as a tuple; of nothing if they are not
/// tensors.
template <class Result> struct Results {
  static constexpr bool are_tensors = is_tensor<Result>;
  using Tuple = std::conditional_t<are_tensors, std::tuple<Result>, std::tuple<>>;
  static Result from(Tuple results) { return std::get<0>(std::move(results)); }
};
template <> struct Results<void> {
  static constexpr bool are_tensors = true;
  using Tuple = std::tuple<>;
  static void from(Tuple) {}
};
template <class... Each> struct Results<std::tuple<Each...>> {
  static constexpr bool are_tensors = (is_tensor<Each> && ...);
  using Tuple = std::conditional_t<are_tensors, std::tuple<Each...>, std::tuple<>>;
  static Tuple from(Tuple results) { return results; }
};

/// The places of tensors.
template <class... Es>
std::tuple<Output<Es>...> outputs_of(const std::tuple<BasicCudaTensor<Es>...>& tensors) {
  return std::apply([](const auto&... each) { return std::tuple<Output<Es>...>(Output<Es>(each)...); },
                    tensors);
}

/// What lies in places, in memory of its own.
template <class... Es>
std::tuple<BasicCudaTensor<Es>...> copies_of(const std::tuple<Output<Es>...>& outputs) {
  return std::apply([](const auto&... each) { return std::tuple(each.copy()...); }, outputs);
}

template <class Function> struct SignatureOf;
template <class Signature> struct SignatureOf<std::function<Signature>> { using Type = Signature; };

}  // namespace detail

template <class Signature> class CapturedStep;

/// A step as `capture` makes it.
template <class Result, class... Inputs> class CapturedStep<Result(Inputs...)> {
  static_assert((is_tensor<std::remove_cvref_t<Inputs>> && ...),
                "capture: a step takes tensors of the device; what else it needs, a lambda can capture");

 public:
  template <class... Moving>
  explicit CapturedStep(std::function<Result(Inputs...)> step, Moving&... moving) : step_(std::move(step)) {
    (add(moving), ...);
    if constexpr (!Results::are_tensors) fail("returns something else than tensors of the device");
  }

  /// Does the step: by a replay if it was captured with inputs of these shapes, else directly, as within the
  /// capture of another step.
  Result operator()(const std::remove_cvref_t<Inputs>&... inputs) {
    if constexpr (Results::are_tensors) {
      if (OngoingCapture::current) return step_(inputs...);
      const std::vector<Shape> shapes{inputs.shape()...};
      if (can_replay(shapes)) return replay(inputs...);
      if (is_time_to_capture(shapes)) return record(inputs...);
    }
    return step_(inputs...);
  }

  /// Whether the last calls have been captured, so that the next is a replay if nothing changes.
  bool captured() const { return recording_ != nullptr; }

  /// Why the last attempt to capture the step has failed; empty if none has.
  const std::string& reason() const { return reason_; }

 private:
  using Results = detail::Results<Result>;
  using Tuple = typename Results::Tuple;

  /// The calls before a capture, in which algorithms are chosen and states are made.
  static constexpr int warm_up = 2;
  /// Attempts one after the other. What the first one has brought to its place, such as parameters that
  /// were shared, does not hinder the second.
  static constexpr int most_failures = 2;

  void add(optim::Optimizer& optimizer) { optimizers_.push_back(&optimizer); }
  void add(Rng& rng) { generators_.push_back(&rng); }

  void fail(const std::string& why) {
    reason_ = "capture: the step runs directly, since it " + why;
    ++failures_;
  }

  bool can_replay(const std::vector<Shape>& shapes) {
    if (!recording_ || shapes != shapes_) return false;
    if (recording_->stream() == current_stream() && recording_->memory().is_intact() &&
        clip_norms_ == clip_norms())
      return true;
    recording_.reset();
    runs_ = warm_up - 1;
    return false;
  }

  bool is_time_to_capture(const std::vector<Shape>& shapes) {
    if (recording_ || failures_ >= most_failures) return false;
    if (shapes != shapes_) shapes_ = shapes, runs_ = 0;
    return runs_++ >= warm_up;
  }

  /// Captures the step, which the device then runs once.
  Result record(const std::remove_cvref_t<Inputs>&... inputs) {
    inputs_ = {detail::Output(inputs).copy()...};
    clip_norms_ = clip_norms();
    const std::int64_t steps = steps_taken();
    auto recording = std::make_unique<Recording>(generators_);
    Tuple results = run();
    recording->finish();
    outputs_ = Outputs(detail::outputs_of(results));
    Tuple copies = detail::copies_of(*outputs_);
    results = {};
    const std::string why = why_not(*recording, steps_taken() - steps);
    if (why.empty()) {
      recording_ = std::move(recording);
      failures_ = 0;
      reason_.clear();
    } else {
      fail(why);
    }
    return Results::from(std::move(copies));
  }

  /// Runs the step on the inputs that a graph refers to.
  Tuple run() {
    return std::apply(
        [&](const auto&... own) -> Tuple {
          if constexpr (std::is_void_v<Result>)
            return step_(own...), Tuple();
          else
            return Tuple(step_(own...));
        },
        inputs_);
  }

  /// What speaks against replaying what was recorded; empty if nothing does.
  std::string why_not(const Recording& recording, std::int64_t steps) const {
    if (!recording.reason().empty()) return recording.reason();
    if (const auto count = recording.memory().live(); count > 0)
      return "keeps " + std::to_string(count) +
             " of the tensors that it makes, which replays would not pass on; let it update them in "
             "place, or return them";
    const auto unique = [](const auto&... own) { return (own.unique() && ...); };
    if (!recording.memory().is_intact() || !std::apply(unique, inputs_))
      return "keeps its inputs, drops tensors that it has used, or shares those that it updates";
    if (steps != static_cast<std::int64_t>(optimizers_.size()) || recording.updates() != optimizers_.size())
      return "takes other steps of optimizers than one of each that `capture` was given";
    return {};
  }

  Result replay(const std::remove_cvref_t<Inputs>&... inputs) {
    std::apply([&](auto&... own) { (take(own, inputs), ...); }, inputs_);
    for (optim::Optimizer* optimizer : optimizers_) optimizer->advance();
    recording_->replay();
    return Results::from(detail::copies_of(*outputs_));
  }

  template <class T> static void take(T& own, const T& input) {
    const T from = input.in_layout(own.layout());
    copy_on_device(own.mutable_data(), from.data(), from.bytes(), current_stream());
  }

  std::int64_t steps_taken() const {
    std::int64_t steps = 0;
    for (const optim::Optimizer* optimizer : optimizers_) steps += optimizer->steps();
    return steps;
  }

  /// These are arguments that are not taken anew.
  std::vector<double> clip_norms() const {
    std::vector<double> norms;
    for (const optim::Optimizer* optimizer : optimizers_) norms.push_back(optimizer->clip_norm());
    return norms;
  }

  using Outputs = decltype(detail::outputs_of(std::declval<Tuple>()));

  std::function<Result(Inputs...)> step_;
  std::vector<optim::Optimizer*> optimizers_;
  std::vector<Rng*> generators_;
  std::vector<Shape> shapes_;  ///< of the inputs of the last calls, or of what is captured
  int runs_ = 0, failures_ = 0;
  std::string reason_;

  // What a graph refers to, and what it was captured for.
  std::tuple<std::remove_cvref_t<Inputs>...> inputs_;
  std::optional<Outputs> outputs_;
  std::vector<double> clip_norms_;
  std::unique_ptr<Recording> recording_;
};

/// A step that the device repeats: `step` is called with tensors of the device, and returns one, a tuple of
/// some, or nothing. What else changes from step to step is named: optimizers, which take one step each, and
/// the generators that random numbers are drawn from.
///
///     auto step = cuda::capture(
///         [&](const CudaTensor& x, const CudaTensor::Index& labels) {
///           Tape<CudaTensor> tape;
///           const auto loss = cross_entropy(model(Grad<CudaTensor>(x), Mode::train), labels);
///           tape.backward(loss);
///           sgd.step();
///           return loss.value();
///         },
///         sgd, rng);
///     for (const auto& batch : loader) step(batch.tensor<CudaTensor>(), batch.targets<CudaTensor>());
///
/// The first two calls with inputs of the same shapes run `step` as it is: algorithms are chosen, states are
/// made. The third one runs it to capture what it has the device do, and that is replayed for the following
/// ones, with the new inputs, the optimizers' rules as they are then (learning rates, numbers of steps) and
/// the generators' next numbers; the results are the same to the last bit. The code of `step` itself does not
/// run again, so learning rates are set between the calls, and numbers or tensors that it refers to stay what
/// they were. Inputs of other shapes, such as the last batch's, run directly. If tensors that the step uses
/// have been replaced or shared since (a checkpoint was loaded, a copy of the weights taken), or a clipping
/// norm was set, or the current stream is another one, it is captured anew by the second call from then on.
///
/// A step that the device cannot repeat by itself runs directly, and `reason()` says why: it reads values on
/// the host (`item`, `to_host`, `gradient_norm`) or brings some from there (`from_host`), waits for the
/// device, draws random numbers or updates parameters by somebody who was not named, or keeps tensors that it
/// makes. That is found at the capture, and nothing is done twice then.
///
/// The optimizers, the generators and all that `step` refers to must outlive the result. `step` is no
/// template, and uses the current stream alone.
template <class Step, class... Moving> auto capture(Step step, Moving&... moving) {
  std::function function(std::move(step));
  return CapturedStep<typename detail::SignatureOf<decltype(function)>::Type>(std::move(function), moving...);
}

}  // namespace taut::cuda
