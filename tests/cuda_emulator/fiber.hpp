#pragma once
// Fibers: functions that can be left in the middle and resumed later, each on a stack of its own.

#include <cstddef>

namespace emulator {

/// A stack on which `body` runs, piece by piece. Only one thread of the host may use fibers at a time.
class Fiber {
 public:
  /// `body` must never return.
  explicit Fiber(void (*body)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body on until it suspends itself.
  void resume();

  /// Called by the body: goes back to where the fiber was resumed.
  void suspend();

 private:
  static void enter();

  void (*body_)();
  std::byte* memory_;           ///< a page that must not be touched, and above it the stack
  void* context_ = nullptr;     ///< where the body goes on
  void* fake_stack_ = nullptr;  ///< what AddressSanitizer remembers of it
};

}  // namespace emulator
