// Copies from the host's ordinary memory without waiting for the device: through pinned memory of the
// thread's own, part after part. A part is written again only once the device has read it.

#include <algorithm>
#include <cstring>
#include <map>

#include "taut/cuda/ongoing_capture.hpp"

namespace taut::cuda {

namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;
constexpr int part_count = 8;

class Staging {
 public:
  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    for (Part& part : parts_) {
      if (part.read) finish_reading(part);
      if (part.memory) release_pinned(part.memory);
    }
  }

  void upload(void* to, const void* from, std::size_t bytes, Stream stream) {
    auto* target = static_cast<std::byte*>(to);
    auto* source = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      Part& part = free_part();
      const std::size_t count = std::min(bytes, part_bytes);
      std::memcpy(part.memory, source, count);
      copy_to_device(target, part.memory, count, stream);
      record(part.read, stream);
      target += count;
      source += count;
      bytes -= count;
    }
  }

 private:
  struct Part {
    void* memory = nullptr;
    Event read = nullptr;
  };

  static void finish_reading(const Part& part) noexcept {
    try {
      synchronize(part.read);
    } catch (const DeviceError&) {
      // Whoever waits for the stream is told.
    }
    destroy_event(part.read);
  }

  /// The part that was used the longest ago, once the device has read it.
  Part& free_part() {
    Part& part = parts_[next_];
    next_ = (next_ + 1) % part_count;
    if (!part.read) part.read = create_event();
    if (!part.memory) part.memory = allocate_pinned(part_bytes);
    synchronize(part.read);
    return part;
  }

  Part parts_[part_count];
  int next_ = 0;
};

}  // namespace

void upload(void* to, const void* from, std::size_t bytes, Stream stream) {
  leave_capture(stream, "takes values from the host");
  static thread_local std::map<int, Staging> of_device;
  of_device[current_device()].upload(to, from, bytes, stream);
}

}  // namespace taut::cuda
