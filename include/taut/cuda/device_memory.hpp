#pragma once
// A device's memory and events as the pool sees them.

#include <cstddef>

#include "device.hpp"

namespace taut::cuda {

/// What the pool needs of a device; tests put a model of one in its place. All of it may be called while
/// streams are being captured, but for `record`, `wait` and events of a stream that is.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Memory aligned to 256 bytes; null if there is not enough.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Gives memory back that no work uses any more.
  virtual void release(void* memory) noexcept = 0;

  /// A new event, recorded in the stream.
  virtual Event record(Stream stream) = 0;
  virtual void destroy(Event event) noexcept = 0;
  virtual bool has_passed(Event event) = 0;
  /// Makes the stream wait, or the host.
  virtual void wait(Stream stream, Event event) = 0;
  virtual void wait(Event event) = 0;

  /// Whether the host can touch the memory. The pool then fills what it hands out with bytes of 0xFF, of
  /// which floats are NaN, and AddressSanitizer sees every access beyond the size that was asked for.
  virtual bool on_host() const { return false; }
};

}  // namespace taut::cuda
