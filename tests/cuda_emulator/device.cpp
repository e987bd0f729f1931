// The door to the device over host memory. All work is done at once, so streams and events are names only.
// Memory has its exact size, so that AddressSanitizer sees overruns, and holds NaN until it is written.

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "taut/cuda/device.hpp"

namespace taut::cuda {

struct OpaqueStream {};

struct OpaqueEvent {
  std::chrono::steady_clock::time_point time{};
};

namespace {

/// What the emulated device has; more is refused, so that running out of memory can be tested.
constexpr std::size_t device_bytes = std::size_t{1} << 30;

/// The environment takes the device away: TAUT_EMULATOR_DEVICES=0.
int emulated_devices() {
  const char* const devices = std::getenv("TAUT_EMULATOR_DEVICES");
  return devices ? std::atoi(devices) : 1;
}

void* allocate_filled(std::size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 512, bytes) != 0) return nullptr;
  std::memset(memory, 0xFF, bytes);
  return memory;
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

int device_count() noexcept { return emulated_devices(); }

void require_device() {
  if (emulated_devices() < 1)
    throw DeviceError("device_count", 0, "cuda: no device was found, run with --device cpu: there is none");
}

const DeviceProperties& device_properties() {
  // Few multiprocessors: kernels that stride over the grid then take more than one step.
  static const DeviceProperties properties{"emulator", 9, 0, 2, device_bytes};
  return properties;
}

int current_device() {
  require_device();
  return 0;
}

void set_current_device(int device) {
  if (device != 0) throw DeviceError("set_current_device", device, "cuda: the emulator has one device");
}

Stream create_stream() { return new OpaqueStream; }
void destroy_stream(Stream stream) noexcept { delete stream; }
void synchronize(Stream) {}

Event create_event(bool) { return new OpaqueEvent; }
void destroy_event(Event event) noexcept { delete event; }
void record(Event event, Stream) { event->time = std::chrono::steady_clock::now(); }
void wait(Stream, Event) {}
bool is_complete(Event) { return true; }
void synchronize(Event) {}
float elapsed_milliseconds(Event begin, Event end) {
  return std::chrono::duration<float, std::milli>(end->time - begin->time).count();
}

void* allocate(std::size_t bytes) {
  require_device();
  return bytes > device_bytes ? nullptr : allocate_filled(bytes);
}
void release(void* memory) noexcept { std::free(memory); }
bool memory_is_on_host() noexcept { return true; }

void* allocate_pinned(std::size_t bytes) { return allocate_filled(bytes); }
void release_pinned(void* memory) noexcept { std::free(memory); }

std::size_t free_memory() { return device_bytes; }

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream) { copy(to, from, bytes); }
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream) { copy(to, from, bytes); }
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream) { copy(to, from, bytes); }

void fill_bytes(void* to, unsigned char value, std::size_t bytes, Stream) {
  if (bytes > 0) std::memset(to, value, bytes);
}

}  // namespace taut::cuda
