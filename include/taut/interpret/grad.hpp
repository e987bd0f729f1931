#pragma once
// `Grad<T>`: computes as T does and records how to differentiate. One template for all operators: the
// gradient rules are the operators' own, written in T's operators, so that `Grad<Grad<T>>` has second
// derivatives.

#include <array>
#include <span>

#include "../core/random.hpp"
#include "../op/movement.hpp"
#include "../op/partial.hpp"
#include "tape.hpp"

namespace taut {

/// A value of type T that can be differentiated by. Made from a T it is a constant; `track()` makes it a
/// leaf, whose gradient is kept; results of tracked values are tracked while a `Tape<T>` is in scope. Copies
/// of a leaf are the same leaf: they share its gradient.
template <class T> class Grad {
 public:
  using tensor_tag = void;
  using Inner = T;
  using Element = typename T::Element;
  using Index = typename T::Index;

  Grad() = default;
  Grad(T value) : value_(std::move(value)) {}
  /// A constant from what T itself can be made of, such as a plain array for a nested `Grad`.
  template <AnyTensor U>
  requires(!std::same_as<U, T> && !std::same_as<U, Grad> && std::convertible_to<U, T>) Grad(U value)
      : value_(T(std::move(value))) {}

  static Grad full(const Shape& shape, Element value) { return T::full(shape, value); }
  static Grad zeros(const Shape& shape) { return T::zeros(shape); }
  static Grad ones(const Shape& shape) { return T::ones(shape); }
  static Grad from_host(std::span<const Element> values, const Shape& shape) {
    return T::from_host(values, shape);
  }
  static Grad uniform(const Shape& shape, Element low, Element high, Rng& rng) {
    return T::uniform(shape, low, high, rng);
  }
  static Grad normal(const Shape& shape, Element mean, Element deviation, Rng& rng) {
    return T::normal(shape, mean, deviation, rng);
  }

  Shape shape() const { return value_.shape(); }
  const T& value() const& { return value_; }
  T&& value() && { return std::move(value_); }

  auto to_host() const { return value_.to_host(); }
  auto item() const { return value_.item(); }

  /// Makes this a leaf: its gradient is computed and kept. Returns itself.
  Grad& track() & {
    slot_ = Ref(new detail::Slot<T>);
    slot_->leaf = true;
    return *this;
  }
  Grad track() && { return std::move(track()); }

  bool is_leaf() const { return slot_ && slot_->leaf; }

  /// Whether gradients flow to this value: it is a leaf, or was recorded by the innermost tape in scope. What
  /// an outer tape of the same type recorded is a constant to an inner one.
  bool tracked() const {
    const Tape<T>* tape = Tape<T>::innermost();
    if (!slot_) return false;
    if (slot_->leaf) return !tape || tape->watches(*slot_);
    return tape && tape->id() == slot_->recording;
  }

  /// Whether this is a leaf whose gradient has been computed.
  bool has_grad() const { return is_leaf() && slot_->pending; }

  /// The gradient of a leaf. Throws `Error` if there is none.
  const T& grad() const {
    if (!has_grad())
      detail::throw_error("grad", is_leaf()
                                      ? "no gradient has been computed; call tape.backward first"
                                      : "only leaves keep their gradient; call track() on the value first");
    return slot_->gradient;
  }

  /// Forgets a leaf's gradient, as optimizers do once they have used it.
  void clear_grad() {
    if (is_leaf()) slot_->take();
  }

  /// The same value as a constant.
  Grad detach() const { return Grad(value_); }

  /// Plays back the innermost tape in scope from this scalar. Throws `Error` if there is none.
  void backward() const {
    if (!Tape<T>::innermost())
      detail::throw_error("backward", "no tape is in scope; declare a Tape before computing the value");
    Tape<T>::innermost()->backward(*this);
  }

  /// Gives a leaf a new value of the same shape, as optimizers do; the leaf stays the same variable.
  void assign(T value) {
    require(value.shape() == shape(), "assign: the shape of a leaf cannot change", shape(), value.shape());
    value_ = std::move(value);
  }

  // For the engine below.
  T& mutable_value() { return value_; }
  const Ref<detail::Slot<T>>& slot() const { return slot_; }
  void record_as(Ref<detail::Slot<T>> slot) { slot_ = std::move(slot); }

 private:
  friend class Tape<T>;

  T value_;
  Ref<detail::Slot<T>> slot_;
};

template <class X> inline constexpr bool is_grad = false;
template <class T> inline constexpr bool is_grad<Grad<T>> = true;

namespace detail {

template <class T, class X> bool is_tracked(const X& x) {
  if constexpr (std::same_as<X, Grad<T>>)
    return x.tracked();
  else
    return false;
}

/// Which operands are tracked, a bit each.
template <class T, class... Xs> std::uint32_t tracked_bits(const Xs&... xs) {
  std::uint32_t bits = 0, bit = 1;
  ((bits |= is_tracked<T>(xs) ? bit : 0, bit <<= 1), ...);
  return bits;
}

/// Takes the lowest of the bits: the slot that an operand's gradient goes to, or none where it is not wanted.
template <class T, class X> Ref<Slot<T>> wanted_slot(std::uint32_t& needs, const X& x) {
  const bool wanted = needs & 1;
  needs >>= 1;
  if constexpr (std::same_as<X, Grad<T>>)
    if (wanted) return x.slot();
  return {};
}

/// An operand as the gradient rule sees it: every tensor as a T, index tensors as they are.
template <class T, class X> decltype(auto) rule_operand(const X& x) {
  if constexpr (std::same_as<X, Grad<T>>)
    return (x.value());
  else if constexpr (std::same_as<X, T> || !std::convertible_to<const X&, T>)
    return (x);
  else
    return T(x);
}

/// Sends a contribution to a tracked operand. A leaf keeps what one tape contributes and drops what another
/// did.
template <class T> void send(Slot<T>& to, T gradient, const RecordingId& from) {
  if (to.leaf) {
    if (to.recording.tape != from.tape) to.take();
    to.recording = from;
  }
  to.contribute(std::move(gradient));
}

/// Puts a step on the tape and returns the operation's result.
template <class T> Grad<T> record(Tape<T>& tape, T value, Step<T>* step) {
  Ref owner(step);
  step->id = tape.id();
  step->out = Ref(new Slot<T>);
  step->out->recording = tape.id();
  Grad<T> result(std::move(value));
  result.record_as(step->out);
  tape.record(std::move(owner));
  return result;
}

/// A step of an operator with a gradient rule of its own, which gives all operands' gradients, or that of the
/// only one.
template <class T, int N, class Rule> struct RuleStep final : Step<T> {
  Ref<Slot<T>> in[N];
  Rule rule;

  template <class... Xs>
  RuleStep(Rule own, std::uint32_t needs, const Xs&... xs)
      : in{wanted_slot<T>(needs, xs)...}, rule(std::move(own)) {}
  RuleStep(Rule own, Ref<Slot<T>> only) : in{std::move(only)}, rule(std::move(own)) {}

  void pull(T gradient) override {
    if constexpr (std::same_as<decltype(rule(std::move(gradient))), T>) {
      send(*in[0], rule(std::move(gradient)), this->id);
    } else {
      auto gradients = rule(std::move(gradient));
      for (int i = 0; i < N; ++i)
        if (in[i]) send(*in[i], std::move(gradients[static_cast<std::size_t>(i)]), this->id);
    }
  }
};

/// An operand of an elementwise operator, with what its gradient takes.
template <class T> struct TrackedOperand {
  Ref<Slot<T>> slot;  // null where no gradient is wanted
  Shape shape;
  PartialPlan plan;
  T saved;  // if the derivative by another operand, or this one, depends on it
};

/// The gradient rule of all elementwise operators: g ∂f/∂xᵢ for each wanted operand, summed over the axes
/// along which it was repeated.
template <class T> struct ElementwiseStep : Step<T> {
  virtual T partial(int i, T gradient) const = 0;

  void pull_each(TrackedOperand<T>* operands, int count, T gradient) {
    while (count > 0 && !operands[count - 1].slot) --count;
    for (int i = 0; i < count; ++i) {
      const auto& [slot, shape, plan, saved] = operands[i];
      if (!slot) continue;
      // The last one may overwrite the gradient's buffer.
      T own = i == count - 1 ? std::move(gradient) : gradient;
      if (!plan.identity) own = partial(i, std::move(own));
      if (!(own.shape() == shape)) own = sum_to(std::move(own), shape);
      send(*slot, std::move(own), this->id);
    }
  }
};

template <class Op, class T, int N> struct ElementwiseStepOf final : ElementwiseStep<T> {
  Op op;
  TrackedOperand<T> operands[N];

  explicit ElementwiseStepOf(const Op& own) : op(own) {}

  void pull(T gradient) override { this->pull_each(operands, N, std::move(gradient)); }

  T partial(int wanted, T gradient) const override {
    T result;
    [&]<int... I>(std::integer_sequence<int, I...>) {
      ((I == wanted ? void(result = partial_by<I>(gradient)) : void()), ...);
    }
    (std::make_integer_sequence<int, N>{});
    return result;
  }

 private:
  // An operand that the derivative does not depend on was not saved; the gradient stands in for it.
  template <int I> T partial_by(T& gradient) const {
    return [&]<int... K>(std::integer_sequence<int, K...>) {
      return eval(op::Partial<Op, I>{{}, op}, std::move(gradient),
                  std::as_const(operands[I].plan.inputs >> K & 1 ? operands[K].saved : gradient)...);
    }
    (std::make_integer_sequence<int, N>{});
  }
};

/// The gradient rule of an elementwise function that states its derivative by its result.
template <class Op, class T> struct OutputRule {
  Op op;
  T y;
  T operator()(T gradient) const { return eval(op::PartialFromOutput<Op>{{}, op}, std::move(gradient), y); }
};

template <class T, class Op, class... Xs>
Grad<T> differentiate_elementwise(const Op& op, Tape<T>& tape, std::uint32_t needs, Xs&&... xs) {
  constexpr int n = sizeof...(Xs);
  if constexpr (n == 1 && HasOutputGradient<Op>) {
    auto slot = (xs.slot(), ...);
    T value = eval(op, unwrap_operand<Grad<T>>(std::forward<Xs>(xs))...);
    Step<T>* step = new RuleStep<T, 1, OutputRule<Op, T>>({op, value}, std::move(slot));
    return record(tape, std::move(value), step);
  } else {
    auto plans = plan_partials<n>(op);
    std::uint32_t inputs = 0;
    for (int i = 0; i < n; ++i) {
      auto& plan = plans[static_cast<std::size_t>(i)];
      if (plan.zero) needs &= ~(std::uint32_t{1} << i);
      if (plan.identity) plan.inputs = 0;
      if (needs >> i & 1) inputs |= plan.inputs;
    }
    if (!needs) return Grad<T>(eval(op, unwrap_operand<Grad<T>>(std::forward<Xs>(xs))...));
    auto* step = new ElementwiseStepOf<Op, T, n>(op);
    const Ref<Step<T>> owner(step);
    // What derivatives need is saved before the result is computed, so that its buffer is not there to be
    // reused.
    auto* operand = step->operands;
    const auto* plan = plans.data();
    ((operand->shape = xs.shape(), operand->plan = *plan++,
      operand->saved = inputs & 1 ? T(rule_operand<T>(xs)) : T(), inputs >>= 1,
      operand->slot = wanted_slot<T>(needs, xs), ++operand),
     ...);
    return record(tape, eval(op, unwrap_operand<Grad<T>>(std::forward<Xs>(xs))...),
                  static_cast<Step<T>*>(step));
  }
}

}  // namespace detail

/// The meaning of every operator for `Grad<T>`: T's result and, where an operand is tracked and a tape in
/// scope, a recorded closure of the operator's gradient rule.
template <class Op, class... Xs>
requires is_grad<OutermostOf<Xs...>>
auto eval(const Op& op, Xs&&... xs) -> WrappedResult<OutermostOf<Xs...>, Op, Xs...> {
  using G = OutermostOf<Xs...>;
  using T = typename G::Inner;
  using Result = WrappedResult<G, Op, Xs...>;
  constexpr int n = sizeof...(Xs);
  static_assert(n <= 32, "operators have at most 32 operands");
  if constexpr (!std::same_as<Result, G>) {
    return eval(op, unwrap_operand<G>(std::forward<Xs>(xs))...);  // indices have no gradient
  } else {
    Tape<T>* tape = Tape<T>::innermost();
    const std::uint32_t needs = tape ? detail::tracked_bits<T>(xs...) & ~constant_operands<Op> : 0;
    if (!needs) return G(eval(op, unwrap_operand<G>(std::forward<Xs>(xs))...));
    if constexpr (ElementwiseOp<Op>) {
      return detail::differentiate_elementwise<T>(op, *tape, needs, std::forward<Xs>(xs)...);
    } else if constexpr (requires(const T& out) {
                           op.pullback(Needs<n>{}, out, detail::rule_operand<T>(xs)...);
                         }) {
      T value = eval(op, unwrap_operand<G>(std::as_const(xs))...);
      auto rule = op.pullback(Needs<n>{needs}, value, detail::rule_operand<T>(xs)...);
      detail::Step<T>* step = new detail::RuleStep<T, n, decltype(rule)>(std::move(rule), needs, xs...);
      return detail::record(*tape, std::move(value), step);
    } else {
      static_assert(Decomposable<Op, decltype(wrap_operand<G>(xs))...>,
                    "Grad: the operator has no gradient rule; give it a `pullback` or a `decompose`");
      return decomposed(op, wrap_operand<G>(xs)...);
    }
  }
}

}  // namespace taut
