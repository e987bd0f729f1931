#pragma once
// Shared ownership of the tape's small objects. Unlike `std::shared_ptr` it costs a translation unit next to
// nothing, which counts where every operator has some, and its memory comes from a free list of the thread's
// own.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "sanitizer.hpp"

namespace taut {

namespace detail {

/// Free lists of small blocks, one a size and a thread. A tape takes two blocks an operation and gives all of
/// them back when it is played, a pattern that a general allocator answers by merging and splitting them
/// again.
class BlockCache {
 public:
  static void* take(std::size_t bytes) {
    const std::size_t kind = kind_of(bytes);
    if (kind >= kinds || !lists_[kind].first) return ::operator new((kind + 1) * step);
    --lists_[kind].length;
    return std::exchange(lists_[kind].first, lists_[kind].first->next);
  }

  static void put(void* block, std::size_t bytes) {
    const std::size_t kind = kind_of(bytes);
    static thread_local const AtExit release_all;
    if (kind >= kinds || closed_ || lists_[kind].length == max_length) return ::operator delete(block);
    ++lists_[kind].length;
    lists_[kind].first = new (block) Link{lists_[kind].first};
  }

 private:
  struct Link {
    Link* next;
  };
  struct List {
    Link* first;
    std::size_t length;
  };
  // What is freed later still, by globals, goes to the general allocator.
  struct AtExit {
    ~AtExit() {
      closed_ = true;
      for (List& list : lists_)
        while (list.first) ::operator delete(std::exchange(list.first, list.first->next));
    }
  };

  // Blocks of up to 1 KiB; none under AddressSanitizer, so that it sees each use after free.
  static constexpr std::size_t step = 64, kinds = TAUT_ADDRESS_SANITIZER ? 0 : 16, max_length = 4096;

  static constexpr std::size_t kind_of(std::size_t bytes) { return (bytes - 1) / step; }

  static inline thread_local constinit List lists_[kinds + 1] = {};
  static inline thread_local constinit bool closed_ = false;
};

}  // namespace detail

/// A count of the `Ref`s to an object, as its base class.
struct RefCounted {
  std::atomic<std::uint32_t> references{0};

  static void* operator new(std::size_t bytes) { return detail::BlockCache::take(bytes); }
  static void operator delete(void* block, std::size_t bytes) { detail::BlockCache::put(block, bytes); }
};

/// A shared owner of a `RefCounted` object: a pointer large, and the last one deletes the object.
template <class T> class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) release();
  }

  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_; }
  bool operator==(const Ref&) const = default;

 private:
  void retain() {
    if (object_) object_->references.fetch_add(1, std::memory_order_relaxed);
  }
  [[gnu::noinline]] void release() {
    if (object_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
  }

  T* object_ = nullptr;
};

}  // namespace taut
