#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace taut::cpu {

/// Gives each different key a number, from `first` on and the same in all threads: for the layouts under
/// which arrays keep other forms of themselves.
template <class Key> class Numbering {
 public:
  explicit Numbering(std::uint64_t first) : first_(first) {}

  std::uint64_t of(Key key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(known_.begin(), known_.end(), key);
    const auto number = first_ + static_cast<std::uint64_t>(found - known_.begin());
    if (found == known_.end()) known_.push_back(std::move(key));
    return number;
  }

 private:
  std::mutex mutex_;
  std::vector<Key> known_;
  std::uint64_t first_;
};

}  // namespace taut::cpu
