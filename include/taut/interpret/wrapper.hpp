#pragma once
// What interpretations that hold one inner value and change only how operators run have in common.

#include <span>
#include <utility>

#include "../core/random.hpp"
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
  static Self from_host(std::span<const Element> values, const Shape& shape) {
    return Self(T::from_host(values, shape));
  }
  static Self uniform(const Shape& shape, Element low, Element high, Rng& rng) {
    return Self(T::uniform(shape, low, high, rng));
  }
  static Self normal(const Shape& shape, Element mean, Element deviation, Rng& rng) {
    return Self(T::normal(shape, mean, deviation, rng));
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
