// The calling thread's current streams, one a device. A stream outlives its thread: the pool may hold memory
// that is bound to it, and later threads take it over, so that there are no more streams than threads ran at
// once.

#include <map>
#include <mutex>
#include <vector>

#include "taut/cuda/device.hpp"

namespace taut::cuda {

namespace {

/// Streams that no thread uses.
class FreeStreams {
 public:
  // Never destroyed: threads may end after the program's globals.
  static FreeStreams& instance() {
    static auto& streams = *new FreeStreams;
    return streams;
  }

  Stream take(int device) {
    const std::lock_guard lock(mutex_);
    auto& streams = streams_[device];
    if (streams.empty()) return create_stream();
    const Stream stream = streams.back();
    streams.pop_back();
    return stream;
  }

  void put(int device, Stream stream) {
    const std::lock_guard lock(mutex_);
    streams_[device].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<Stream>> streams_;
};

/// A thread's streams on one device: its own, once it is needed, and the current one if that was set.
struct Streams {
  Stream own = nullptr, current = nullptr;
};

struct ThreadStreams {
  std::map<int, Streams> of_device;

  ~ThreadStreams() {
    for (const auto& [device, streams] : of_device)
      if (streams.own) FreeStreams::instance().put(device, streams.own);
  }
};

Streams& thread_streams(int device) {
  static thread_local ThreadStreams streams;
  return streams.of_device[device];
}

}  // namespace

Stream current_stream() {
  const int device = current_device();
  Streams& streams = thread_streams(device);
  if (streams.current) return streams.current;
  if (!streams.own) streams.own = FreeStreams::instance().take(device);
  return streams.own;
}

void set_current_stream(Stream stream) { thread_streams(current_device()).current = stream; }

}  // namespace taut::cuda
