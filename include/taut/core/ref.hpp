#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace taut {

/// A count of the `Ref`s to an object, as its base class.
struct RefCounted {
  std::atomic<std::uint32_t> references{0};
};

/// A shared owner of a `RefCounted` object: a pointer large, and the last one deletes the object. Unlike
/// `std::shared_ptr` it costs a translation unit next to nothing, which counts where every operator has some.
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
