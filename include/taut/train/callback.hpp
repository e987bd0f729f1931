#pragma once
// What a training loop calls. A callback is any object with `on_batch(const BatchEvent&)`,
// `on_epoch(const EpochResult&)` or both; `ProgressBar` and `CsvLog` are two.

#include <concepts>
#include <optional>

#include "history.hpp"

namespace taut::train {

/// What a callback returns to let the training go on or to end it; returning nothing lets it go on.
enum class Control { proceed, stop };

/// Is told of every batch.
template <class C>
concept BatchCallback = requires(C& callback, const BatchEvent& event) {
  callback.on_batch(event);
};

/// Is told of every epoch.
template <class C>
concept EpochCallback = requires(C& callback, const EpochResult& result) {
  callback.on_epoch(result);
};

template <class C>
concept Callback = BatchCallback<C> || EpochCallback<C>;

/// A callback that may be there or not, as a program's options say.
template <EpochCallback C> struct Optional {
  std::optional<C> callback;
  auto on_epoch(const EpochResult& result) {
    using Answer = decltype(callback->on_epoch(result));
    if constexpr (std::same_as<Answer, Control>)
      return callback ? callback->on_epoch(result) : Control::proceed;
    else if (callback)
      callback->on_epoch(result);
  }
};

namespace detail {

/// Runs one callback; true if it wants the training to stop.
template <class Call> bool wants_stop(const Call& call) {
  using Result = decltype(call());
  static_assert(std::same_as<Result, Control> || std::same_as<Result, void>,
                "callback: on_batch and on_epoch return train::Control or nothing");
  if constexpr (std::same_as<Result, Control>) {
    return call() == Control::stop;
  } else {
    call();
    return false;
  }
}

template <class C> bool notify_one(C& callback, const BatchEvent& event) {
  if constexpr (BatchCallback<C>) return wants_stop([&] { return callback.on_batch(event); });
  return false;
}

template <class C> bool notify_one(C& callback, const EpochResult& result) {
  if constexpr (EpochCallback<C>) return wants_stop([&] { return callback.on_epoch(result); });
  return false;
}

/// Tells all callbacks of a `BatchEvent` or an `EpochResult`, in their order; true if any of them wants the
/// training to stop.
template <class Event, class... Cs> bool notify(const Event& event, Cs&... callbacks) {
  bool stop = false;
  ((stop |= notify_one(callbacks, event)), ...);
  return stop;
}

}  // namespace detail
}  // namespace taut::train
