#pragma once
// Dropout (Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014),
// inverted as in PyTorch: what is kept is scaled up in training, and evaluation does nothing.

#include <string_view>

#include "../core/mode.hpp"
#include "../core/random.hpp"
#include "operator.hpp"

namespace taut {

namespace op {

/// xᵢ mᵢ / (1 - p), where mᵢ is 0 with probability p and else 1. The mask is a function of the random stream
/// and the position, so the gradient rule draws the same one again and nothing is saved.
struct Dropout {
  static constexpr std::string_view name = "dropout";
  double p = 0.5;
  RandomStream stream{};

  constexpr Shape shape(const Shape& x) const {
    require(p >= 0 && p <= 1, "dropout: the probability must be between 0 and 1", x);
    return x;
  }
  template <AnyTensor T> auto pullback(Needs<1>, const T&, const T&) const {
    return [same = *this](T g) { return eval(same, std::move(g)); };
  }
};

}  // namespace op

/// In training, sets each element to 0 with probability `p` and scales the others by 1 / (1 - p); in
/// evaluation returns x. Throws `ShapeError` in training unless 0 <= p <= 1.
template <AnyTensor X> constexpr std::remove_cvref_t<X> dropout(X&& x, double p, Mode mode, Rng& rng) {
  if (mode == Mode::eval) return std::forward<X>(x);
  const auto count = static_cast<std::uint64_t>(x.shape().size());
  return eval(op::Dropout{p, rng.draw(count)}, std::forward<X>(x));
}

}  // namespace taut
