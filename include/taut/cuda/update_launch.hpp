#pragma once
// The launchers of optimizers' passes over all parameters, as both the tensors' side and the kernels' side
// see them.

#include <cstdint>

#include "argument.hpp"
#include "device.hpp"

namespace taut::cuda {

/// The float values that parameters of E are rounded from; floats are their own.
template <class E> struct MasterPointer { float* master; };
template <> struct MasterPointer<float> {};

/// One parameter's elements, gradient and states on the device.
template <class E, int States> struct UpdatePointers : MasterPointer<E> {
  E* parameter;
  const E* gradient;
  float* state[States > 0 ? States : 1];
  std::int64_t size;
};

/// rule(p, scale g, states…) for all elements of `count` parameters, for E float or bfloat16. Defined in
/// update.cuh for the rules that a `.cu` file names.
template <class Rule, class E>
void launch_update(const Argument<Rule>& rule, const Argument<float>& scale,
                   const UpdatePointers<E, Rule::states>* items, int count, Stream stream);

/// An array on the device.
template <class E> struct Elements {
  const E* data;
  std::int64_t size;
};

/// Elements of an array that one partial sum of squares is of.
inline constexpr int squares_chunk = 16384;

/// How many partial sums of squares an array has.
constexpr std::int64_t squares_chunks(std::int64_t size) {
  return (size + squares_chunk - 1) / squares_chunk;
}

/// Writes the sum of squares of each chunk of `count` arrays, in order, for E float or bfloat16.
template <class E> void launch_squares(const Elements<E>* items, int count, float* to, Stream stream);

/// Makes of `count` sums of squares the norm √Σ, and the factor min(1, most / (norm + 1e-6)), NaN if the norm
/// is.
void launch_clip(std::int64_t count, const float* sums, float most, float* norm, float* factor,
                 Stream stream);

}  // namespace taut::cuda
