#pragma once
// `Grad<T>`: computes as T does and records how to differentiate. One template for all operators: the
// gradient rules are the operators' own, written in T's operators, so that `Grad<Grad<T>>` has second
// derivatives.

#include <array>
#include <memory>
#include <optional>
#include <tuple>

#include "../op/movement.hpp"
#include "../op/partial.hpp"
#include "tape.hpp"

namespace taut {

/// A value of type T that can be differentiated by. Made from a T it is a constant; `track()` makes it a
/// leaf, whose gradient is kept; results of tracked values are tracked while a `Tape<T>` is in scope.
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
  template <class... Args> static Grad from_host(Args&&... args) {
    return T::from_host(std::forward<Args>(args)...);
  }
  template <class... Args> static Grad uniform(Args&&... args) {
    return T::uniform(std::forward<Args>(args)...);
  }
  template <class... Args> static Grad normal(Args&&... args) {
    return T::normal(std::forward<Args>(args)...);
  }

  Shape shape() const { return value_.shape(); }
  const T& value() const& { return value_; }
  T&& value() && { return std::move(value_); }

  auto to_host() const { return value_.to_host(); }
  auto item() const { return value_.item(); }

  /// Makes this a leaf: its gradient is computed and kept. Returns itself.
  Grad& track() & {
    slot_ = std::make_shared<detail::Slot<T>>();
    slot_->leaf = true;
    return *this;
  }
  Grad track() && { return std::move(track()); }

  bool is_leaf() const { return slot_ && slot_->leaf; }

  /// Whether gradients flow to this value: it is a leaf, or was recorded by a tape that is in scope.
  bool tracked() const {
    if (!slot_) return false;
    if (slot_->leaf) return true;
    for (const Tape<T>* tape = Tape<T>::innermost(); tape; tape = tape->outer())
      if (tape->id() == slot_->recording) return true;
    return false;
  }

  /// Whether this is a leaf whose gradient has been computed.
  bool has_grad() const { return is_leaf() && slot_->pending; }

  /// The gradient of a leaf. Throws `Error` if there is none.
  const T& grad() const {
    if (!has_grad())
      throw Error(is_leaf()
                      ? "grad: no gradient has been computed; call tape.backward first"
                      : "grad: only leaves keep their gradient; call track() on the value before using it");
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
      throw Error("backward: no tape is in scope; declare a Tape before computing the value");
    Tape<T>::innermost()->backward(*this);
  }

  /// Gives a leaf a new value of the same shape, as optimizers do; the leaf stays the same variable.
  void assign(T value) {
    require(value.shape() == shape(), "assign: the shape of a leaf cannot change", shape(), value.shape());
    value_ = std::move(value);
  }

  // For the engine below.
  T& mutable_value() { return value_; }
  const std::shared_ptr<detail::Slot<T>>& slot() const { return slot_; }
  void record_as(std::shared_ptr<detail::Slot<T>> slot) { slot_ = std::move(slot); }

 private:
  friend class Tape<T>;

  T value_;
  std::shared_ptr<detail::Slot<T>> slot_;
};

template <class X> inline constexpr bool is_grad = false;
template <class T> inline constexpr bool is_grad<Grad<T>> = true;

namespace detail {

template <class T, class X> constexpr bool is_tracked(const X& x) {
  if constexpr (std::same_as<X, Grad<T>>)
    return x.tracked();
  else
    return false;
}

template <class T, class X> std::shared_ptr<Slot<T>> slot_of(const X& x) {
  if constexpr (std::same_as<X, Grad<T>>)
    return x.slot();
  else
    return nullptr;
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

/// The gradient rule of all elementwise operators: g ∂f/∂xᵢ for each wanted operand, summed over the axes
/// along which it was repeated. Saves just the operands that these derivatives depend on.
template <class Op, class T, std::size_t N> struct ElementwiseRule {
  Op op;
  std::array<bool, N> wanted;
  std::array<PartialPlan, N> plans;
  std::array<T, N> saved;
  std::array<Shape, N> shapes;

  std::array<T, N> operator()(T g) const {
    std::array<T, N> gradients;
    [&]<std::size_t... I>(std::index_sequence<I...>) { (gradient<I>(gradients, g), ...); }
    (std::make_index_sequence<N>{});
    return gradients;
  }

 private:
  template <std::size_t I> void gradient(std::array<T, N>& gradients, T& g) const {
    if (!wanted[I]) return;
    const bool last = std::none_of(wanted.begin() + I + 1, wanted.end(), [](bool b) { return b; });
    T local = plans[I].identity ? g : last ? partial<I>(std::move(g), g) : partial<I>(g, g);
    gradients[I] = local.shape() == shapes[I] ? std::move(local) : sum_to(std::move(local), shapes[I]);
  }

  // An operand that the derivative does not depend on was not saved; g stands in for it.
  template <std::size_t I, class G> T partial(G&& g, const T& stand_in) const {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return eval(op::Partial<Op, static_cast<int>(I)>{{}, op}, std::forward<G>(g),
                  (plans[I].inputs >> K & 1 ? saved[K] : stand_in)...);
    }
    (std::make_index_sequence<N>{});
  }
};

/// The gradient rule of an elementwise function that states its derivative by its result.
template <class Op, class T> struct OutputRule {
  Op op;
  T y;
  std::array<T, 1> operator()(T g) const {
    return {eval(op::PartialFromOutput<Op>{{}, op}, std::move(g), y)};
  }
};

/// One recorded operation: takes the gradient of the result, if any arrived, and sends each operand its
/// share.
template <class T, std::size_t N, class Pull> struct Step {
  RecordingId id;
  std::shared_ptr<Slot<T>> out;
  std::array<std::shared_ptr<Slot<T>>, N> in;
  Pull pull;

  void operator()() {
    if (!out->pending) return;
    if constexpr (std::same_as<decltype(pull(out->take())), T>) {
      send(*in[0], pull(out->take()), id);
    } else {
      auto gradients = pull(out->take());
      for (std::size_t i = 0; i < N; ++i)
        if (in[i]) send(*in[i], std::move(gradients[i]), id);
    }
  }
};

template <class T, std::size_t N, class Pull>
Grad<T> record(Tape<T>& tape, T value, const Needs<static_cast<int>(N)>& needs,
               std::array<std::shared_ptr<Slot<T>>, N> in, Pull pull) {
  Grad<T> result(std::move(value));
  auto slot = std::make_shared<Slot<T>>();
  slot->recording = tape.id();
  result.record_as(slot);
  for (std::size_t i = 0; i < N; ++i)
    if (!needs[static_cast<int>(i)]) in[i] = nullptr;
  tape.record(Step<T, N, Pull>{tape.id(), std::move(slot), std::move(in), std::move(pull)});
  return result;
}

template <class T, class Op, class... Xs>
Grad<T> differentiate_elementwise(const Op& op, Tape<T>& tape, Needs<static_cast<int>(sizeof...(Xs))> needs,
                                  Xs&&... xs) {
  constexpr std::size_t n = sizeof...(Xs);
  const std::array<std::shared_ptr<Slot<T>>, n> slots{slot_of<T>(xs)...};
  if constexpr (n == 1 && HasOutputGradient<Op>) {
    T value = eval(op, unwrap_operand<Grad<T>>(std::forward<Xs>(xs))...);
    OutputRule<Op, T> rule{op, value};
    return record<T, n>(tape, std::move(value), needs, slots, std::move(rule));
  } else {
    ElementwiseRule<Op, T, n> rule{op, {}, plan_partials<static_cast<int>(n)>(op), {}, {xs.shape()...}};
    std::uint32_t inputs = 0;
    for (std::size_t i = 0; i < n; ++i) {
      auto& wanted = needs.wanted[i];
      wanted = wanted && !rule.plans[i].zero;
      if (wanted && !rule.plans[i].identity) inputs |= rule.plans[i].inputs;
    }
    if (!needs.any()) return Grad<T>(eval(op, unwrap_operand<Grad<T>>(std::forward<Xs>(xs))...));
    rule.wanted = needs.wanted;
    std::size_t k = 0;
    // What the derivatives need is saved, so that its buffer is no longer the operand's alone to be reused.
    ((inputs >> k & 1 ? void(rule.saved[k] = rule_operand<T>(xs)) : void(), ++k), ...);
    T value = eval(op, unwrap_operand<Grad<T>>(std::forward<Xs>(xs))...);
    return record<T, n>(tape, std::move(value), needs, slots, std::move(rule));
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
  constexpr std::size_t n = sizeof...(Xs);
  if constexpr (!std::same_as<Result, G>) {
    return eval(op, unwrap_operand<G>(std::forward<Xs>(xs))...);  // indices have no gradient
  } else {
    Tape<T>* tape = Tape<T>::innermost();
    const Needs<static_cast<int>(n)> needs{{detail::is_tracked<T>(xs)...}};
    if (!tape || !needs.any()) return G(eval(op, unwrap_operand<G>(std::forward<Xs>(xs))...));
    if constexpr (ElementwiseOp<Op>) {
      return detail::differentiate_elementwise<T>(op, *tape, needs, std::forward<Xs>(xs)...);
    } else if constexpr (requires(const T& out) {
                           op.pullback(needs, out, detail::rule_operand<T>(xs)...);
                         }) {
      T value = eval(op, unwrap_operand<G>(std::as_const(xs))...);
      auto pull = op.pullback(needs, value, detail::rule_operand<T>(xs)...);
      return detail::record<T, n>(*tape, std::move(value), needs, {detail::slot_of<T>(xs)...},
                                  std::move(pull));
    } else {
      static_assert(Decomposable<Op, std::remove_cvref_t<Xs>...>,
                    "Grad: the operator has no gradient rule; give it a `pullback` or a `decompose`");
      return op.decompose(xs...);
    }
  }
}

}  // namespace taut
