#pragma once
// What interpretations that hold one inner value and change only how operators run have in common.

#include <utility>

#include "../op/operator.hpp"

namespace taut {

/// The base of `Self`, a class that wraps a T: construction, factories and access forward to T.
template <class Self, class T> class Wrapper {
 public:
  using tensor_tag = void;
  using Inner = T;
  using Element = typename T::Element;
  using Index = typename T::Index;

  Wrapper() = default;
  Wrapper(T value) : value_(std::move(value)) {}

  static Self full(const Shape& shape, Element value) { return Self(T::full(shape, value)); }
  static Self zeros(const Shape& shape) { return Self(T::zeros(shape)); }
  static Self ones(const Shape& shape) { return Self(T::ones(shape)); }
  template <class... Args> static Self from_host(Args&&... args) {
    return Self(T::from_host(std::forward<Args>(args)...));
  }
  template <class... Args> static Self uniform(Args&&... args) {
    return Self(T::uniform(std::forward<Args>(args)...));
  }
  template <class... Args> static Self normal(Args&&... args) {
    return Self(T::normal(std::forward<Args>(args)...));
  }

  Shape shape() const { return value_.shape(); }
  const T& value() const& { return value_; }
  T&& value() && { return std::move(value_); }
  T& mutable_value() { return value_; }  // for optimizers

  auto to_host() const { return value_.to_host(); }
  auto item() const { return value_.item(); }

 private:
  T value_;
};

}  // namespace taut
