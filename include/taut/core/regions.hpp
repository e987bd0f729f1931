#pragma once
// Where the pool's blocks come from: regions of the address space that are backed by huge pages, from which
// blocks are cut. A tensor of 2 MiB in pages of 4 KiB needs 512 entries of the TLB, more than most kernels
// can keep; in huge pages it needs one or two. Training ResNet-20 is 1.3 times faster for it.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "sanitizer.hpp"

namespace taut::cpu::detail {

/// The alignment of tensors' data: a cache line, and the width of the widest SIMD register.
inline constexpr std::size_t alignment = 64;

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Regions are cut by first fit, and what comes back is merged with its free neighbours. A region of which
/// nothing is used any more goes back to the system, and so do huge pages inside of what is free. All that is
/// kept of free memory lies in it, so that giving memory back cannot fail. Thread-safe.
class Regions {
 public:
  /// `bytes` bytes, a multiple of the alignment, aligned; null if there are none.
  static void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (Region* region = first_; region != nullptr; region = region->next)
      if (void* const found = cut(*region, bytes)) return found;
    Region* const region = map(bytes);
    return region == nullptr ? nullptr : cut(*region, bytes);
  }

  static void give_back(void* memory, std::size_t bytes) noexcept {
    if (Region* const unused = put_back(static_cast<std::byte*>(memory), bytes))
      munmap(unused, unused->bytes);  // takes its time, so without the lock
  }

  /// Bytes of all regions, whether cut or free.
  static std::size_t mapped_bytes() {
    const std::lock_guard lock(mutex_);
    std::size_t total = 0;
    for (const Region* region = first_; region != nullptr; region = region->next) total += region->bytes;
    return total;
  }

 private:
  /// Free memory, which this stands at the beginning of.
  struct Range {
    std::size_t bytes;
    Range* next;  ///< by address

    std::byte* begin() { return reinterpret_cast<std::byte*>(this); }
    std::byte* end() { return begin() + bytes; }
  };

  struct alignas(alignment) Region {
    Region* next;
    std::size_t bytes;
    std::size_t used;  ///< how many blocks are cut from it
    Range* free;

    bool contains(const void* memory) const {
      const auto offset = reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(this);
      return offset < bytes;
    }
  };
  static_assert(sizeof(Region) == alignment && sizeof(Range) <= alignment);

  static constexpr std::size_t least_bytes = 16 * huge_page;

  /// A new region with room for `bytes`, at the front of the list; null if there is none.
  static Region* map(std::size_t bytes) {
    const std::size_t wanted = (sizeof(Region) + bytes + huge_page - 1) / huge_page * huge_page;
    const std::size_t size = wanted < least_bytes ? least_bytes : wanted;
    // Regions begin at a huge page: what is mapped too much before and behind goes back.
    void* const mapped =
        mmap(nullptr, size + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* const start = static_cast<std::byte*>(mapped);
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
    if (before > 0) munmap(start, before);
    munmap(start + before + size, huge_page - before);
#ifdef MADV_HUGEPAGE
    madvise(start + before, size, MADV_HUGEPAGE);  // a wish: failure changes nothing
#endif
    auto* const region = new (start + before) Region{first_, size, 0, nullptr};
    region->free = new (region + 1) Range{size - sizeof(Region), nullptr};
    return first_ = region;
  }

  /// The first of the region's free memory that is large enough, without which it goes on; null if there is
  /// none.
  static void* cut(Region& region, std::size_t bytes) {
    Range** link = &region.free;
    while (*link != nullptr && (*link)->bytes < bytes) link = &(*link)->next;
    Range* const found = *link;
    if (found == nullptr) return nullptr;
    const std::size_t rest = found->bytes - bytes;
    *link = rest > 0 ? new (found->begin() + bytes) Range{rest, found->next} : found->next;
    ++region.used;
    return found;
  }

  /// Makes memory free again. Returns its region if nothing of it is used any more; nobody else then knows
  /// it.
  static Region* put_back(std::byte* memory, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    Region** link = &first_;
    while (!(*link)->contains(memory)) link = &(*link)->next;
    Region* const region = *link;
    if (--region->used == 0) {
      *link = region->next;
      return region;
    }
    insert(*region, memory, bytes);
    return nullptr;
  }

  static void insert(Region& region, std::byte* memory, std::size_t bytes) {
    Range* before = nullptr;
    Range* after = region.free;
    while (after != nullptr && after->begin() < memory) before = after, after = after->next;
    auto* range = new (memory) Range{bytes, after};
    if (after != nullptr && range->end() == after->begin()) absorb(*range, *after);
    if (before == nullptr) {
      region.free = range;
    } else if (before->end() == memory) {
      absorb(*before, *range);
      range = before;
    } else {
      before->next = range;
    }
    release_pages(*range);
  }

  static void absorb(Range& range, Range& next) {
    range.bytes += next.bytes;
    range.next = next.next;
  }

  /// Returns the huge pages that lie in free memory, but for its first bytes, which are used.
  static void release_pages(Range& range) {
    const auto round_up = [](std::uintptr_t at) { return (at + huge_page - 1) / huge_page * huge_page; };
    const auto begin = round_up(reinterpret_cast<std::uintptr_t>(range.begin() + sizeof(Range)));
    const auto end = reinterpret_cast<std::uintptr_t>(range.end()) / huge_page * huge_page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

  static inline constinit std::mutex mutex_;
  static inline constinit Region* first_ = nullptr;
};

/// Blocks of at least this size are cut from regions. AddressSanitizer is to see all blocks apart.
inline constexpr std::size_t region_threshold =
    TAUT_ADDRESS_SANITIZER ? ~std::size_t{0} : std::size_t{16} << 10;

/// Memory from the system, aligned; null if there is none.
inline void* system_allocate(std::size_t bytes) {
  if (bytes >= region_threshold) return Regions::take(bytes);
  return ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
}

inline void system_free(void* memory, std::size_t bytes) noexcept {
  if (bytes >= region_threshold)
    Regions::give_back(memory, bytes);
  else
    ::operator delete (memory, std::align_val_t{alignment});
}

}  // namespace taut::cpu::detail
