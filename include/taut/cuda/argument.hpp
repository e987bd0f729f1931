#pragma once
// Arguments of kernels that need not be known when the kernel is launched.

namespace taut::cuda {

/// An argument of a kernel: a value, or a place in the device's memory that has the value when the kernel
/// runs. What is launched once and replayed many times can be given other values by the second way.
template <class X> struct Argument {
  constexpr Argument(const X& known, const X* from = nullptr) : value(known), place(from) {}

  constexpr X get() const { return place ? *place : value; }

  X value;
  const X* place;  ///< null if `value` is meant
};

}  // namespace taut::cuda
