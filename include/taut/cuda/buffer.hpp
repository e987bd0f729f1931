#pragma once
// The reference-counted handle to device memory that tensors hold.

#include <cstddef>
#include <utility>

#include "pool.hpp"

namespace taut::cuda {

namespace detail {

/// Makes a device the calling thread's current one while in scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : before_(current_device()) {
    if (device != before_) set_current_device(device);
    changed_ = device != before_;
  }
  ~DeviceScope() {
    if (changed_) set_current_device(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_;
  bool changed_ = false;
};

/// A device by the functions of device.hpp.
class Device final : public DeviceMemory {
 public:
  explicit Device(int index) : index_(index) {}

  void* allocate(std::size_t bytes) override {
    const DeviceScope scope(index_);
    return cuda::allocate(bytes);
  }
  void release(void* memory) noexcept override {
    const DeviceScope scope(index_);
    cuda::release(memory);
  }
  Event record(Stream stream) override {
    const DeviceScope scope(index_);
    const Event event = create_event();
    cuda::record(event, stream);
    return event;
  }
  void destroy(Event event) noexcept override { destroy_event(event); }
  bool has_passed(Event event) override { return is_complete(event); }
  void wait(Stream stream, Event event) override { cuda::wait(stream, event); }
  void wait(Event event) override { synchronize(event); }
  bool on_host() const override { return memory_is_on_host(); }

 private:
  int index_;
};

/// A device and its pool.
struct PooledDevice {
  explicit PooledDevice(int index) : device(index), pool(device) {}

  Device device;
  Pool pool;
};

/// How many devices can have a pool.
inline constexpr int max_devices = 64;

}  // namespace detail

/// The pool of the current device's memory. It is never destroyed, so buffers may outlive every static
/// object.
inline Pool& pool() {
  static detail::PooledDevice* const* const devices = [] {
    auto* const all = new detail::PooledDevice*[detail::max_devices];
    for (int i = 0; i < detail::max_devices; ++i) all[i] = new detail::PooledDevice(i);
    return all;
  }();
  return devices[current_device()]->pool;
}

/// A reference-counted handle to device memory from the pool: what tensors hold. Copies share the memory.
/// Threads may copy and drop different handles to the same memory at once, but must not share one handle
/// unguarded.
class Buffer {
 public:
  /// No memory: `data()` is null and `bytes()` is 0.
  constexpr Buffer() noexcept = default;

  /// `bytes` bytes of undefined content, aligned to 256, for work that is put into the current stream from
  /// now on. 0 is allowed. Throws `DeviceError` if there is no memory.
  static Buffer allocate(std::size_t bytes) { return allocate(bytes, pool(), current_stream()); }

  /// The same from a given pool for a given stream.
  static Buffer allocate(std::size_t bytes, Pool& pool, Stream stream) {
    return Buffer(pool.acquire(bytes, stream));
  }

  Buffer(const Buffer& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() {
    if (block_ != nullptr) drop();
  }

  /// Where the memory is, for work that the caller is about to put into the current stream. The pool takes
  /// note of it, so that nobody else gets the memory before that work is done, whenever the handles are
  /// dropped.
  std::byte* data() const { return block_ == nullptr ? nullptr : data(current_stream()); }

  /// The same for work that is put into a given stream.
  std::byte* data(Stream stream) const {
    if (block_ == nullptr) return nullptr;
    if (stream != block_->stream.load(std::memory_order_relaxed) || block_->pool->is_capturing())
      block_->pool->note_use(block_, stream);
    return block_->memory;
  }

  /// The same for work that writes to it.
  std::byte* mutable_data() const { return block_ == nullptr ? nullptr : mutable_data(current_stream()); }
  std::byte* mutable_data(Stream stream) const {
    std::byte* const memory = data(stream);
    if (block_ != nullptr && block_->pool->is_capturing()) block_->pool->note_write(block_, stream);
    return memory;
  }

  std::size_t bytes() const noexcept { return block_ == nullptr ? 0 : block_->bytes; }

  /// Whether this is the only handle to its memory, which may then be overwritten by work in the streams that
  /// have used it. False for an empty handle.
  bool unique() const noexcept {
    return block_ != nullptr && block_->references.load(std::memory_order_acquire) == 1;
  }

  explicit operator bool() const noexcept { return block_ != nullptr; }

 private:
  explicit Buffer(detail::Block* block) noexcept : block_(block) {}

  void drop() noexcept {
    // The only owner needs no read-modify-write: nobody else can make a copy.
    if (unique() || block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      block_->pool->release(block_);
  }

  detail::Block* block_ = nullptr;
};

}  // namespace taut::cuda
