#pragma once
// The tape: a vector of closures, played backwards. A tape records while it is in scope; tapes of one tensor
// type form a stack on each thread, the innermost recording.

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/ref.hpp"
#include "../op/arithmetic.hpp"

namespace taut {

template <class T> class Grad;

namespace detail {

/// Names a tape's recording: which tape, and how often it had been played.
struct RecordingId {
  std::uint64_t tape = 0, played = 0;
  bool operator==(const RecordingId&) const = default;
};

inline std::uint64_t next_tape_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// The place where the gradient of one tracked value gathers. Closures hold slots, not values: so a value
/// lives on only where a rule has saved it.
template <class T> struct Slot : RefCounted {
  T gradient;
  bool pending = false;   // a contribution has arrived
  bool leaf = false;      // keeps its gradient
  RecordingId recording;  // who recorded the value; for a leaf, who last contributed

  /// The first contribution is assigned, later ones are added, never in a buffer that anybody else can see.
  void contribute(T g) {
    if (pending)
      gradient = eval(op::Add{}, std::move(gradient), std::move(g));
    else
      gradient = std::move(g);
    pending = true;
  }

  T take() {
    pending = false;
    return std::exchange(gradient, T{});
  }
};

/// One recorded operation, which the tape's closure plays. What does not depend on the operator stands in the
/// base classes, since every operator of a program has a step of its own.
template <class T> struct Step : RefCounted {
  RecordingId id;
  Ref<Slot<T>> out;

  virtual ~Step() = default;
  /// Sends each operand its share of the result's gradient.
  virtual void pull(T gradient) = 0;

  void run() {
    if (out->pending) pull(out->take());
  }
};

}  // namespace detail

/// Records what is computed with tracked `Grad<T>` values while it is in scope, and plays it backwards.
///
/// A tape lives and dies on one thread. Several `backward` calls on one tape add up in the leaves (gradient
/// accumulation); the first contribution from another tape replaces what is there, so nothing is reset by
/// hand.
template <class T> class Tape {
 public:
  Tape() : Tape(Leaves::all) {}
  ~Tape() {
    for (Tape** link = &innermost_; *link; link = &(*link)->outer_)
      if (*link == this) {
        *link = outer_;
        break;
      }
  }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Computes the gradients of all leaves that the scalar `y` was computed from. What was recorded is
  /// consumed: each closure is destroyed as soon as it has run. Throws `Error` if `y` was not recorded by
  /// this tape since it was last played, `ShapeError` if `y` has more than one element.
  void backward(const Grad<T>& y) {
    require(y.shape().size() == 1,
            "backward: takes a scalar; reduce it first, as by sum(y), or pass a cotangent", y.shape());
    backward(y, T::ones(y.shape()));
  }

  /// The same for a `y` of any shape, with the gradient of the final result by `y` given.
  void backward(const Grad<T>& y, T cotangent) {
    if (!recorded(y))
      detail::throw_error(
          "backward",
          "the value was not recorded by this tape; compute it from tracked values while the tape is in "
          "scope, and play each recording once");
    require(cotangent.shape() == y.shape(), "backward: the cotangent must have the value's shape",
            cotangent.shape(), y.shape());
    y.slot_->contribute(std::move(cotangent));
    ++id_.played;
    auto steps = std::exchange(steps_, {});
    try {
      for (; !steps.empty(); steps.pop_back()) steps.back().play();
    } catch (...) {
      id_.tape = detail::next_tape_id();  // what has reached the leaves is not added to
      throw;
    }
  }

  /// Whether `y` is a result that this tape can play back from.
  bool recorded(const Grad<T>& y) const { return y.slot_ && !y.slot_->leaf && y.slot_->recording == id_; }

  /// How many operations are recorded.
  std::size_t size() const { return steps_.size(); }

  /// The innermost tape in scope on this thread, or null.
  static Tape* innermost() { return innermost_; }

  // For the interpretation `Grad`.
  void record(Ref<detail::Step<T>> step) {
    auto* const operation = &*step;
    steps_.push_back({[operation] { operation->run(); }, std::move(step)});
  }
  const detail::RecordingId& id() const { return id_; }
  bool watches(const detail::Slot<T>& leaf) const {
    return leaves_ == Leaves::all || leaf.recording.tape == id_.tape;
  }

 protected:
  /// Whose gradients are computed: those of all leaves, or only of those whose recording is this tape's.
  enum class Leaves { all, own };

  explicit Tape(Leaves leaves) : outer_(innermost_), leaves_(leaves) { innermost_ = this; }

 private:
  // The closure holds a plain pointer, so that it fits into the function object, and the tape what it points
  // to.
  struct Recorded {
    std::function<void()> play;
    Ref<detail::Step<T>> step;
  };

  static inline thread_local Tape* innermost_ = nullptr;

  Tape* outer_;
  Leaves leaves_;
  detail::RecordingId id_{detail::next_tape_id(), 0};
  std::vector<Recorded> steps_;
};

}  // namespace taut
