#pragma once
// `Dataset`: what a `DataLoader` loads from.

#include <concepts>
#include <cstdint>
#include <span>

#include "../core/random.hpp"
#include "../core/shape.hpp"

namespace taut::data {

/// A finite list of labelled samples, all of one shape.
///
///  - `size()` is the number of samples, `sample_shape()` the shape of each.
///  - `get(index, values, rng)` writes the `sample_shape().size()` values of sample `index`, from 0 to
///    `size() - 1`, to `values` in row-major order, and returns its label. Random augmentation draws from
///    `rng` only, which depends on the loader's seed, the epoch and the index, and on nothing else.
///
/// A loader calls `get` from several threads at once, each with its own `values` and `rng`. The samples may
/// not change while it does. An exception from `get` reaches the loop that consumes the batches.
template <class D>
concept Dataset = requires(const D& dataset, std::int64_t index, std::span<float> values, Rng& rng) {
  { dataset.size() } -> std::convertible_to<std::int64_t>;
  { dataset.sample_shape() } -> std::convertible_to<Shape>;
  { dataset.get(index, values, rng) } -> std::convertible_to<std::int64_t>;
};

}  // namespace taut::data
