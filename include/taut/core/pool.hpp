#pragma once
// The memory of CPU tensors: `cpu::Pool`, a caching allocator of 64-byte aligned blocks, and `cpu::Buffer`,
// the reference-counted handle to one block. Fresh memory has to be cleared by the kernel first, which takes
// longer than most operators; a training step that allocates the same sizes again and again gets warm blocks
// instead.

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "error.hpp"
#include "regions.hpp"
#include "sanitizer.hpp"

#if TAUT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace taut::cpu {

namespace detail {

struct Form;

/// What stands in front of a buffer's data. The links are used while the block is cached.
struct alignas(alignment) Block {
  std::atomic<std::size_t> references{1};
  std::size_t bytes = 0;       ///< as requested
  std::size_t size_class = 0;  ///< see `size_class_of`
  Block* above = nullptr;      ///< neighbours in the stack of cached blocks of this class
  Block* below = nullptr;
  Block* newer = nullptr;  ///< neighbours in the list of all cached blocks by time of release
  Block* older = nullptr;
  std::atomic<Form*> forms{nullptr};  ///< the same contents in other layouts, kept by `Buffer::keep_form`

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(Block) == alignment);

/// Capacities are multiples of 64 bytes up to 512, then four to each power of two (1, 1.25, 1.5, 1.75), so
/// that less than a quarter of a request above 256 bytes is wasted, and nothing of a power of two.
constexpr std::size_t size_class_of(std::size_t bytes) {
  const std::size_t lines = bytes == 0 ? 0 : (bytes - 1) / alignment;  // one less than the cache lines needed
  if (lines < 4) return lines;
  const int shift = std::bit_width(lines) - 3;
  return static_cast<std::size_t>(shift) * 4 + (lines >> shift);
}

/// The capacity in bytes of a size class.
constexpr std::size_t capacity_of(std::size_t size_class) {
  if (size_class < 4) return (size_class + 1) * alignment;
  const std::size_t shift = size_class / 4 - 1;
  return ((size_class - shift * 4 + 1) << shift) * alignment;
}

/// What a block of a size class takes from the system.
constexpr std::size_t block_bytes(std::size_t size_class) { return sizeof(Block) + capacity_of(size_class); }

/// The most bytes one buffer can have: 128 TiB, the address space of a process.
inline constexpr std::size_t max_bytes = std::size_t{1} << 47;

/// Under AddressSanitizer, cached blocks and what a buffer did not ask for must not be touched.
inline void poison([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t bytes) {
#if TAUT_ADDRESS_SANITIZER
  ASAN_POISON_MEMORY_REGION(begin, bytes);
#endif
}

inline void unpoison([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t bytes) {
#if TAUT_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#endif
}

/// The cached blocks: a stack a size class, and all in one list by time of release. Blocks linked by `newer`
/// alone form a chain, in which blocks leave the cache. Not thread-safe.
class Cache {
 public:
  std::size_t bytes() const { return bytes_; }

  /// Removes and returns the most recently released block of a class; null if there is none.
  Block* take(std::size_t size_class) {
    Block* const block = top_[size_class];
    if (block != nullptr) unlink(block);
    return block;
  }

  void put(Block* block) {
    Block*& top = top_[block->size_class];
    block->above = nullptr;
    block->below = top;
    if (top != nullptr) top->above = block;
    top = block;
    block->newer = nullptr;
    block->older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = block;
    newest_ = block;
    bytes_ += block_bytes(block->size_class);
  }

  /// Removes the oldest blocks until at most `limit` bytes are cached, and returns their chain.
  Block* shrink(std::size_t limit) {
    Block* chain = nullptr;
    while (bytes_ > limit) {
      Block* const block = oldest_;
      unlink(block);
      block->newer = chain;
      chain = block;
    }
    return chain;
  }

 private:
  void unlink(Block* block) {
    (block->above != nullptr ? block->above->below : top_[block->size_class]) = block->below;
    if (block->below != nullptr) block->below->above = block->above;
    (block->newer != nullptr ? block->newer->older : newest_) = block->older;
    (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
    bytes_ -= block_bytes(block->size_class);
  }

  Block* top_[size_class_of(max_bytes) + 1] = {};
  Block* newest_ = nullptr;
  Block* oldest_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace detail

/// The process's pool of CPU memory. Blocks that buffers release are kept and handed out again to requests of
/// the same size class. When more than `cache_limit()` bytes would be cached, those released longest ago go
/// back to the system. Thread-safe. It has no destructor, so buffers may outlive every other static object.
class Pool {
 public:
  /// Bytes of all blocks that buffers hold, headers and rounding included.
  static std::size_t live_bytes() {
    const std::lock_guard lock(mutex_);
    return live_bytes_;
  }

  /// Bytes of all blocks kept for reuse, counted likewise.
  static std::size_t cached_bytes() {
    const std::lock_guard lock(mutex_);
    return cache_.bytes();
  }

  /// The most bytes that are kept for reuse. By default a quarter of the machine's memory: what a large
  /// training step releases is mostly there for the next one, and other programs keep room.
  static std::size_t cache_limit() {
    const std::lock_guard lock(mutex_);
    return limit();
  }

  /// Sets the limit, and returns to the system what is cached beyond it. 0 turns caching off,
  /// and then every tensor is paid for with fresh memory.
  static void cache_limit(std::size_t bytes) { free_chain(set_limit(bytes)); }

  /// Returns all cached blocks to the system.
  static void trim() { free_chain(empty_cache()); }

 private:
  friend class Buffer;
  using Block = detail::Block;

  static constexpr std::size_t unset = ~std::size_t{0};

  /// A block for `bytes` bytes with one reference, its contents undefined. Throws `Error` if there is none.
  [[gnu::noinline]] static Block* acquire(std::size_t bytes) {
    if (bytes > detail::max_bytes) fail(bytes);
    const std::size_t size_class = detail::size_class_of(bytes);
    Block* block = take(size_class);
    if (block == nullptr) block = make(bytes, size_class);
    block->references.store(1, std::memory_order_relaxed);
    block->bytes = bytes;
    detail::unpoison(block->data(), bytes);
    detail::poison(block->data() + bytes, detail::capacity_of(size_class) - bytes);
    return block;
  }

  /// Takes back a block that nobody refers to any more.
  [[gnu::noinline]] static void release(Block* block) noexcept {
    drop_forms(block);
    detail::poison(block->data(), detail::capacity_of(block->size_class));
    free_chain(put(block));
  }

  static void drop_forms(Block* block) noexcept;

  /// Counts a block of the class as live, and returns a cached one, or null if there is none.
  static Block* take(std::size_t size_class) {
    const std::lock_guard lock(mutex_);
    live_bytes_ += detail::block_bytes(size_class);
    return cache_.take(size_class);
  }

  /// Caches a block, and returns the chain of those that must go for it.
  static Block* put(Block* block) noexcept {
    const std::lock_guard lock(mutex_);
    live_bytes_ -= detail::block_bytes(block->size_class);
    cache_.put(block);
    return cache_.shrink(limit());
  }

  static Block* set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    return cache_.shrink(bytes);
  }

  static Block* empty_cache() {
    const std::lock_guard lock(mutex_);
    return cache_.shrink(0);
  }

  [[gnu::cold]] static Block* make(std::size_t bytes, std::size_t size_class) {
    void* memory = detail::system_allocate(detail::block_bytes(size_class));
    if (memory == nullptr) {
      trim();
      memory = detail::system_allocate(detail::block_bytes(size_class));
    }
    if (memory == nullptr) {
      discount(size_class);
      fail(bytes);
    }
    auto* block = new (memory) Block;
    block->size_class = size_class;
    return block;
  }

  static void discount(std::size_t size_class) {
    const std::lock_guard lock(mutex_);
    live_bytes_ -= detail::block_bytes(size_class);
  }

  /// Returns a chain of blocks to the system. Called without the lock.
  static void free_chain(Block* block) noexcept {
    while (block != nullptr) {
      Block* const next = block->newer;
      detail::unpoison(block->data(), detail::capacity_of(block->size_class));
      detail::system_free(block, detail::block_bytes(block->size_class));
      block = next;
    }
  }

  [[noreturn, gnu::cold]] static void fail(std::size_t bytes) {
    throw Error("Buffer::allocate: out of memory: asked for " + std::to_string(bytes) + " bytes while " +
                std::to_string(live_bytes()) + " are in use; use smaller tensors or batches");
  }

  static std::size_t limit() {
    if (limit_ == unset) limit_ = default_limit();
    return limit_;
  }

  [[gnu::cold]] static std::size_t default_limit() {
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0) return std::size_t{1} << 30;
    return static_cast<std::size_t>(pages) / 4 * static_cast<std::size_t>(page_bytes);
  }

  static inline constinit std::mutex mutex_;
  static inline constinit detail::Cache cache_;
  static inline constinit std::size_t live_bytes_ = 0;
  static inline constinit std::size_t limit_ = unset;
};

/// Names a layout of an array: `layout` is any number that means one, for arrays of the given extents.
struct FormKey {
  std::uint64_t layout = 0;
  std::int64_t extents[6] = {};

  friend bool operator==(const FormKey&, const FormKey&) = default;
};

/// A reference-counted handle to memory from the pool: what tensors hold. Copies share the memory. Threads
/// may copy and drop different handles to the same memory at once, but must not share one handle unguarded.
class Buffer {
 public:
  /// No memory: `data()` is null and `bytes()` is 0.
  constexpr Buffer() noexcept = default;

  /// `bytes` bytes of undefined content, aligned to 64. 0 is allowed. Throws `Error` if there is no memory.
  static Buffer allocate(std::size_t bytes) { return Buffer(Pool::acquire(bytes)); }

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

  std::byte* data() const noexcept { return block_ == nullptr ? nullptr : block_->data(); }
  std::size_t bytes() const noexcept { return block_ == nullptr ? 0 : block_->bytes; }

  /// Whether this is the only handle to its memory, which may then be overwritten. What other threads did to
  /// the memory before they dropped their handles has happened. False for an empty handle.
  bool unique() const noexcept {
    return block_ != nullptr && block_->references.load(std::memory_order_acquire) == 1;
  }

  explicit operator bool() const noexcept { return block_ != nullptr; }

  /// The same contents in another layout, as `keep_form` has kept them under `key`, or an empty handle. The
  /// result lives as long as this memory does and is not written to.
  Buffer form(const FormKey& key) const noexcept;

  /// Keeps `other`, the same contents in another layout, together with this memory until that is written to
  /// or released. Several threads may do so at once.
  void keep_form(const FormKey& key, Buffer other) const;

  /// The form under `key`, which is made by `make()` and kept if there is none.
  template <class F> Buffer form_or(const FormKey& key, const F& make) const {
    Buffer found = form(key);
    if (!found) keep_form(key, found = make());
    return found;
  }

  /// The form under `key`, which is made by `make()` and kept at the second call: what is used once before
  /// the contents change is not worth it. An empty handle at the first.
  template <class F> Buffer form_if_reused(const FormKey& key, const F& make) const {
    if (Buffer found = form(key)) return found;
    FormKey used_before = key;
    used_before.layout = ~key.layout;
    if (form(used_before)) return form_or(key, make);
    keep_form(used_before, allocate(0));
    return {};
  }

  /// Must be called before this memory is written to: drops the kept forms, which would be out of date.
  void drop_forms() const noexcept {
    if (block_ != nullptr) Pool::drop_forms(block_);
  }

 private:
  explicit Buffer(detail::Block* block) noexcept : block_(block) {}

  void drop() noexcept {
    // The only owner needs no read-modify-write: nobody else can make a copy.
    if (unique() || block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) Pool::release(block_);
  }

  detail::Block* block_ = nullptr;
};

namespace detail {

/// One kept form of a buffer, and the next.
struct Form {
  FormKey key;
  Buffer buffer;
  Form* next;
};

}  // namespace detail

inline void Pool::drop_forms(Block* block) noexcept {
  if (block->forms.load(std::memory_order_relaxed) == nullptr) return;
  detail::Form* form = block->forms.exchange(nullptr, std::memory_order_acq_rel);
  while (form != nullptr) delete std::exchange(form, form->next);
}

inline Buffer Buffer::form(const FormKey& key) const noexcept {
  const detail::Form* form = block_ ? block_->forms.load(std::memory_order_acquire) : nullptr;
  while (form != nullptr && !(form->key == key)) form = form->next;
  return form != nullptr ? form->buffer : Buffer();
}

inline void Buffer::keep_form(const FormKey& key, Buffer other) const {
  if (block_ == nullptr) return;  // of no elements, which have no other form
  auto* const form = new detail::Form{key, std::move(other), block_->forms.load(std::memory_order_relaxed)};
  while (!block_->forms.compare_exchange_weak(form->next, form, std::memory_order_acq_rel)) {
  }
}

}  // namespace taut::cpu
