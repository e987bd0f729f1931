#pragma once
// The door to the device: its memory, streams and events as plain functions over opaque pointers. The library
// `taut::cuda` implements them by the CUDA runtime; the tests' emulator implements them over host memory. All
// but what asks for the number of devices throw `DeviceError` where the device's own call fails.

#include <cstddef>
#include <string_view>

#include "../core/error.hpp"

namespace taut::cuda {

/// A queue of work of a device: what is put into one stream runs in order.
using Stream = struct OpaqueStream*;

/// A mark in a stream, to wait for or to measure time between.
using Event = struct OpaqueEvent*;

/// Work that was captured from a stream.
using Graph = struct OpaqueGraph*;

/// How many devices there are: 0 without a driver or a device, whatever the reason.
int device_count() noexcept;

/// Throws `DeviceError` if there is no device, and says what to do.
void require_device();

/// What kernels' launches are shaped by, and reports name.
struct DeviceProperties {
  char name[256] = "";
  int major = 0, minor = 0;     ///< the compute capability
  int multiprocessors = 1;      ///< how many blocks it takes at least to occupy the device
  std::size_t total_bytes = 0;  ///< of memory
};

/// The properties of the current device, read once.
const DeviceProperties& device_properties();

/// The device that the calling thread works on, 0 at first.
int current_device();
void set_current_device(int device);

/// The stream that the calling thread's operators run on: unless set otherwise, one of its own a device. The
/// streams of threads that have ended are given to new ones.
Stream current_stream();

/// Makes a stream the calling thread's current one on the current device; null gives it its own again.
void set_current_stream(Stream stream);

/// Makes a stream the current one while in scope.
class StreamScope {
 public:
  explicit StreamScope(Stream stream) : before_(current_stream()) { set_current_stream(stream); }
  ~StreamScope() { set_current_stream(before_); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Stream before_;
};

/// A new stream of the current device, which waits for no other.
Stream create_stream();
void destroy_stream(Stream stream) noexcept;

/// Waits until all that has been put into the stream is done. Throws if any of it failed.
void synchronize(Stream stream);

/// A new event of the current device, unless `timed` only to wait for.
Event create_event(bool timed = false);
void destroy_event(Event event) noexcept;

/// Puts a mark into the stream.
void record(Event event, Stream stream);

/// What is put into the stream from now on waits for the event, without the host waiting.
void wait(Stream stream, Event event);

/// Whether the stream has come past the event; true of one that was never recorded.
bool is_complete(Event event);

/// Waits until the stream has come past the event.
void synchronize(Event event);

/// The time between two timed events that are complete, in milliseconds.
float elapsed_milliseconds(Event begin, Event end);

/// A named range of the calling thread, from push to pop, that NVIDIA's profilers show (NVTX).
void push_range(std::string_view name);
void pop_range();

/// From now on what is put into the stream is not run but captured. Until the capture ends, nothing may wait
/// for the stream.
void begin_capture(Stream stream);

/// Ends the capture. Throws if something was done that can't be captured; what was is lost then.
Graph end_capture(Stream stream);

/// Puts captured work into the stream, any number of times.
void replay(Graph graph, Stream stream);

/// Gives a graph's resources back, once those of its replays are done that are in a stream.
void destroy_graph(Graph graph) noexcept;

/// Memory of the current device, aligned to 256 bytes at least; null if there is not enough of it. Slow, and
/// waits for the device: the pool (pool.hpp) calls it.
void* allocate(std::size_t bytes);
void release(void* memory) noexcept;

/// Whether the host can touch the device's memory, as under the emulator.
bool memory_is_on_host() noexcept;

/// Memory of the host that the device can copy from and to on its own; slow, too.
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* memory) noexcept;

/// The current device's memory that is not allocated by anybody, in bytes.
std::size_t free_memory();

/// Copies, in the stream. The host's side should be pinned, and stay as it is until the stream is past the
/// copy.
void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream);
void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream);
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream);

/// Copies from any memory of the host, which may be changed as soon as this returns.
void upload(void* to, const void* from, std::size_t bytes, Stream stream);

/// Sets each byte, in the stream.
void fill_bytes(void* to, unsigned char value, std::size_t bytes, Stream stream);

}  // namespace taut::cuda
