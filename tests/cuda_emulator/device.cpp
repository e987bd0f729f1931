// The door to the device over host memory. All work is done at once, unless it is captured or its stream is
// late. Memory has its exact size, so that AddressSanitizer sees overruns, and holds NaN until it is written.

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "emulator.hpp"
#include "taut/cuda/ongoing_capture.hpp"

namespace taut::cuda {

struct OpaqueStream {};

struct OpaqueEvent {
  emulator::Mark mark{};
  std::chrono::steady_clock::time_point time{};
};

struct OpaqueGraph {
  std::vector<emulator::Work> work;
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

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes > 0) emulator::submit(stream, [=] { std::memcpy(to, from, bytes); });
}

/// Refuses what a device's stream refuses while it is captured.
void require_not_captured(const char* call, Stream stream) {
  constexpr int capture_unsupported = 900;
  if (emulator::is_capturing(stream))
    throw DeviceError(call, capture_unsupported, "cuda: not permitted when the stream is capturing");
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
void destroy_stream(Stream stream) noexcept {
  emulator::run_until(emulator::mark(stream));
  delete stream;
}
void synchronize(Stream stream) {
  leave_capture(stream, "waits for the device");
  require_not_captured("synchronize", stream);
  emulator::run_until(emulator::mark(stream));
}

Event create_event(bool) { return new OpaqueEvent; }
void destroy_event(Event event) noexcept { delete event; }
void record(Event event, Stream stream) {
  leave_capture(stream, "records an event");
  require_not_captured("record", stream);
  event->mark = emulator::mark(stream);
  event->time = std::chrono::steady_clock::now();
}
void wait(Stream stream, Event event) {
  leave_capture(stream, "waits for another stream");
  require_not_captured("wait", stream);
  emulator::submit(stream, [mark = event->mark] { emulator::run_until(mark); });
}
bool is_complete(Event event) { return emulator::has_passed(event->mark); }
void synchronize(Event event) { emulator::run_until(event->mark); }
float elapsed_milliseconds(Event begin, Event end) {
  return std::chrono::duration<float, std::milli>(end->time - begin->time).count();
}

void push_range(std::string_view) {}
void pop_range() {}

void begin_capture(Stream stream) { emulator::begin_capture(stream); }
Graph end_capture(Stream stream) { return new OpaqueGraph{emulator::end_capture(stream)}; }
void replay(Graph graph, Stream stream) {
  require_not_captured("replay", stream);
  for (const emulator::Work& work : graph->work) emulator::submit(stream, work);
}
void destroy_graph(Graph graph) noexcept { delete graph; }

void* allocate(std::size_t bytes) {
  require_device();
  return bytes > device_bytes ? nullptr : allocate_filled(bytes);
}
void release(void* memory) noexcept { std::free(memory); }
bool memory_is_on_host() noexcept { return !emulator::any_late(); }  // late work uses what has been freed

void* allocate_pinned(std::size_t bytes) { return allocate_filled(bytes); }
void release_pinned(void* memory) noexcept { std::free(memory); }

std::size_t free_memory() { return device_bytes; }

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, stream);
}
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, stream);
}
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, stream);
}

void fill_bytes(void* to, unsigned char value, std::size_t bytes, Stream stream) {
  if (bytes > 0) emulator::submit(stream, [=] { std::memset(to, value, bytes); });
}

}  // namespace taut::cuda
