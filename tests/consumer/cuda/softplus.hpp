#pragma once
#include <taut/op/arithmetic.hpp>

/// ln(1 + eˣ), written so that the exponential never overflows.
struct Softplus : taut::op::Elementwise {
  static constexpr std::string_view name = "softplus";
  template <class S> constexpr S operator()(S x) const {
    using std::abs, std::exp, std::log1p, taut::maximum;
    return maximum(x, S(0)) + log1p(exp(-abs(x)));
  }
};
