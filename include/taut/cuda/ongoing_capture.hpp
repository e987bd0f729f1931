#pragma once
// What has to be known while work is being captured from a stream, instead of run.

#include "device.hpp"

namespace taut::cuda {

/// A capture that is going on in the calling thread.
class OngoingCapture {
 public:
  /// The capture that is going on in this thread, or null.
  static inline thread_local OngoingCapture* current = nullptr;

  explicit OngoingCapture(Stream stream) : stream_(stream) {}

  /// What is captured from.
  Stream stream() const { return stream_; }

  /// Ends the capture because of something that no replay could do, and lets the device run what was captured
  /// so far. What the program does from now on is run, as if nothing had been captured. `why` completes "the
  /// step…".
  virtual void interrupt(const char* why) = 0;

 protected:
  ~OngoingCapture() = default;

 private:
  Stream stream_;
};

/// To be called before anything is done with a stream that cannot be captured: ends the capture of it, if
/// there is one.
inline void leave_capture(Stream stream, const char* why) {
  OngoingCapture* const capture = OngoingCapture::current;
  if (capture && capture->stream() == stream) capture->interrupt(why);
}

}  // namespace taut::cuda
