#pragma once
// Optimizers. An update rule is an elementwise functor over (parameter, gradient, state…); the engine applies
// it to all parameters of a model in one pass, after clipping the gradients by their global norm.

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/ref.hpp"
#include "../nn/model.hpp"
#include "update.hpp"

namespace taut::optim {

/// What an optimizer keeps for a parameter, such as its momentum, or the master of a narrow one; no values
/// before the parameter's first step.
struct ParameterState {
  Shape shape;
  std::vector<double> values;
};

/// What all optimizers can do, whatever their rule and their tensors.
class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Updates each parameter that has a gradient, and uses the gradient up. Throws `Error` if none has one.
  virtual void step() = 0;

  /// Counts a step whose update somebody else does, such as a device that replays one which it has recorded:
  /// the rule is then what that update has to go by.
  virtual void advance() = 0;

  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double rate) = 0;

  /// Scales all gradients by one factor so that their global norm is at most `norm`, as PyTorch's
  /// `clip_grad_norm_`; 0 switches clipping off. Throws `Error` if negative.
  void set_clip_norm(double norm) {
    if (!(norm >= 0))
      throw Error("set_clip_norm: expected a norm of at least 0, got " + std::to_string(norm));
    clip_norm_ = norm;
  }
  double clip_norm() const { return clip_norm_; }

  /// The global norm of the gradients at the last step, before clipping; only computed where clipping is on.
  /// A device is only waited for here.
  virtual double gradient_norm() const = 0;

  /// How many steps have been taken.
  std::int64_t steps() const { return steps_; }

  /// All that the optimizer keeps: for each parameter in the model's order, the states of its rule, and then,
  /// where the leaf is narrow, its master.
  virtual std::vector<ParameterState> state() const = 0;

  /// Goes on from what `state` gave, of an optimizer with the same rule for the same model, after `steps`
  /// steps. Throws `Error` if it does not fit, and then changes nothing.
  void restore(const std::vector<ParameterState>& state, std::int64_t steps) {
    set_state(state);
    steps_ = steps;
  }

 protected:
  virtual void set_state(const std::vector<ParameterState>& state) = 0;

  double clip_norm_ = 0;
  std::int64_t steps_ = 0;
};

namespace detail {

/// The leaf tensor inside all wrappers, to be written to.
template <class T> auto& mutable_leaf(T& x) {
  if constexpr (requires { typename T::Inner; })
    return mutable_leaf(x.mutable_value());
  else
    return x;
}

/// Runs a pass over all parameters. It is no operator, so an interpretation within T that keeps times, as
/// `Profiled` does, is told what it does: for each element the `flops`, and the bytes that are `moved`.
template <class T, class Items, class F>
void run_pass(std::string_view name, const Items& items, int flops, std::size_t moved, const F& run) {
  if constexpr (requires { T::timed(name, Shape{}, std::int64_t{}, std::int64_t{}, run); }) {
    std::int64_t count = 0;
    for (const auto& item : items) count += item.parameter->shape().size();
    const auto bytes = count * static_cast<std::int64_t>(moved);
    T::timed(std::string("update.").append(name), Shape{count}, flops * count, bytes, run);
  } else if constexpr (requires { typename T::Inner; }) {
    run_pass<typename T::Inner>(name, items, flops, moved, run);
  } else {
    run();
  }
}

template <class Rule> struct Engine : RefCounted {
  virtual ~Engine() = default;
  virtual bool step(const Rule& rule, double clip_norm) = 0;
  virtual double gradient_norm() const = 0;
  virtual std::vector<ParameterState> state() const = 0;
  virtual void set_state(const std::vector<ParameterState>& state) = 0;
};

template <class Rule, class T> class EngineOn final : public Engine<Rule> {
 public:
  explicit EngineOn(std::vector<Grad<T>*> parameters)
      : parameters_(std::move(parameters)), kept_(parameters_.size()) {}

  bool step(const Rule& rule, double clip_norm) override {
    items_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      Grad<T>& parameter = *parameters_[i];
      if (!parameter.has_grad()) continue;
      Leaf& value = mutable_leaf(parameter.mutable_value());
      for (auto& kept : kept_[i])
        if (!(kept.shape() == value.shape())) kept = Wide::zeros(value.shape());
      UpdateItem<Leaf, Rule::states> item{&value, &leaf_value(parameter.grad()), {}};
      for (std::size_t k = 0; k < item.state.size(); ++k) item.state[k] = &kept_[i][k];
      if constexpr (narrow) item.master = &kept_[i].back();
      items_.push_back(item);
    }
    if (items_.empty()) return false;
    const std::span<const UpdateItem<Leaf, Rule::states>> items(items_);
    typename GradientNorm<Leaf>::Scale scale{1};
    if (clip_norm > 0)
      run_pass<T>("gradient_norm", items, 2, sizeof(typename Leaf::Element),
                  [&] { scale = norm_.clip(items, clip_norm); });
    // The operations of a rule are not known: the pass is limited by memory anyway. It reads the parameter,
    // the gradient and what is kept, and writes all but the gradient.
    constexpr auto moved =
        3 * sizeof(typename Leaf::Element) + 2 * kept_count * sizeof(typename Wide::Element);
    run_pass<T>(Rule::name, items, 0, moved, [&] { apply_update(rule, scale, items); });
    for (auto* parameter : parameters_) parameter->clear_grad();
    return true;
  }

  double gradient_norm() const override { return norm_.value(); }

  std::vector<ParameterState> state() const override {
    std::vector<ParameterState> result;
    for (const auto& kept : kept_)
      for (const auto& state : kept) {
        const auto values = state.to_host();
        result.push_back({state.shape(), {values.begin(), values.end()}});
      }
    return result;
  }

  void set_state(const std::vector<ParameterState>& from) override {
    auto kept = kept_;
    std::size_t count = 0;
    for (std::size_t i = 0; i < kept.size(); ++i)
      for (auto& state : kept[i]) {
        const ParameterState& saved = count < from.size() ? from[count++] : throw_misfit();
        if (saved.values.empty()) {
          state = Wide();
        } else {
          if (!(saved.shape == parameters_[i]->shape())) throw_misfit();
          state = Wide::from_host(
              std::vector<typename Wide::Element>(saved.values.begin(), saved.values.end()), saved.shape);
        }
      }
    if (count != from.size()) throw_misfit();
    kept_ = std::move(kept);
  }

 private:
  using Leaf = std::remove_reference_t<decltype(mutable_leaf(std::declval<T&>()))>;
  using Wide = Widened<Leaf>;
  static constexpr bool narrow = !std::same_as<Wide, Leaf>;
  static constexpr std::size_t kept_count = static_cast<std::size_t>(Rule::states) + narrow;

  [[noreturn]] static const ParameterState& throw_misfit() {
    taut::detail::throw_error(Rule::name, "the state to restore is of another model or another rule");
  }

  std::vector<Grad<T>*> parameters_;
  std::vector<std::array<Wide, kept_count>> kept_;  // the states; if the leaf is narrow, then the master
  std::vector<UpdateItem<Leaf, Rule::states>> items_;
  GradientNorm<Leaf> norm_;
};

}  // namespace detail

/// An optimizer with the update rule `Rule`. It refers to the model's parameters, so the model must outlive
/// it and stay where it is.
template <UpdateRule Rule> class RuleOptimizer final : public Optimizer {
 public:
  /// `rule` holds the hyper-parameters: `optim::Sgd sgd{model, {.lr = 0.1}}`.
  template <Model M>
  explicit RuleOptimizer(M& model, Rule rule = {})
      : rule_(std::move(rule)),
        engine_(new detail::EngineOn<Rule, typename TensorOf<M>::Inner>(parameters(model))) {
    static_assert(is_grad<TensorOf<M>>, "an optimizer takes a model over Grad<T>: others have no gradients");
    check_rate(static_cast<double>(rule_.lr));
    for (const auto* parameter : parameters(model))
      if (!parameter->is_leaf())
        taut::detail::throw_error(Rule::name,
                                  "a parameter of the model is no leaf; call track() on it first");
  }

  /// What is no model, with the reason as the compiler's message.
  template <class M>
  requires(!Model<M> && !std::derived_from<M, Optimizer>) explicit RuleOptimizer(M&, Rule = {}) {
    static_assert(Model<M>,
                  "an optimizer takes a model: a struct with fields of Grad<T>, layers or other models, and "
                  "without constructors, private fields or bases");
  }

  void step() override {
    begin_step();
    if (!engine_->step(rule_, clip_norm_))
      taut::detail::throw_error(Rule::name,
                                "no parameter has a gradient; call tape.backward(loss) before each step");
    ++steps_;
  }

  void advance() override {
    begin_step();
    ++steps_;
  }

  double gradient_norm() const override { return engine_->gradient_norm(); }
  std::vector<ParameterState> state() const override { return engine_->state(); }

  double learning_rate() const override { return static_cast<double>(rule_.lr); }
  void set_learning_rate(double rate) override {
    check_rate(rate);
    rule_.lr = static_cast<decltype(rule_.lr)>(rate);
  }

  const Rule& rule() const { return rule_; }

 private:
  void set_state(const std::vector<ParameterState>& state) override { engine_->set_state(state); }

  void begin_step() {
    if constexpr (requires { rule_.begin_step(steps_); }) rule_.begin_step(steps_ + 1);
  }

  static void check_rate(double rate) {
    if (rate < 0) taut::detail::throw_error(Rule::name, "the learning rate must be at least 0");
  }

  Rule rule_;
  Ref<detail::Engine<Rule>> engine_;
};

}  // namespace taut::optim
