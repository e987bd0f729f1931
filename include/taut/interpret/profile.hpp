#pragma once
// What profiled operators took: booked by the work that they did, read back by name or by shape.

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/shape.hpp"

namespace taut {

/// What an operator has taken so far, all its calls together.
struct ProfileEntry {
  std::int64_t calls = 0;
  double seconds = 0;
  std::int64_t flops = 0;
  std::int64_t bytes = 0;        ///< that had to be moved at least: operands read and results written once
  std::int64_t conversions = 0;  ///< of operands from one memory layout to another, which a leaf may count

  ProfileEntry& operator+=(const ProfileEntry& other) {
    calls += other.calls, seconds += other.seconds, flops += other.flops, bytes += other.bytes;
    conversions += other.conversions;
    return *this;
  }
};

/// The same of those calls that do the same: of one operator, on operands of the same shapes, with as many
/// operations and bytes.
struct ShapedProfileEntry : ProfileEntry {
  std::string name;
  std::vector<Shape> operands;
};

namespace detail {

/// What a call does: a view, by which the profile is searched.
struct Work {
  std::string_view name;
  std::span<const Shape> operands;
  std::int64_t flops = 0, bytes = 0;
};

struct OwnedWork {
  std::string name;
  std::vector<Shape> operands;
  std::int64_t flops = 0, bytes = 0;

  explicit OwnedWork(const Work& work)
      : name(work.name),
        operands(work.operands.begin(), work.operands.end()),
        flops(work.flops),
        bytes(work.bytes) {}
  operator Work() const { return {name, operands, flops, bytes}; }
};

/// Some order of works, cheap to tell: most differ in their counts already.
struct WorkOrder {
  using is_transparent = void;

  bool operator()(const Work& a, const Work& b) const {
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (a.flops != b.flops) return a.flops < b.flops;
    if (const int order = a.name.compare(b.name)) return order < 0;
    return std::lexicographical_compare(a.operands.begin(), a.operands.end(), b.operands.begin(),
                                        b.operands.end(), shape_before);
  }

 private:
  static bool shape_before(const Shape& a, const Shape& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

class TraceBuffer;

/// The books of all threads. An entry, once made, stays where it is, without calls after a reset: so events
/// of a trace can refer to its key, and profiling in a loop allocates nothing.
struct Profile {
  std::mutex mutex;
  std::map<OwnedWork, ProfileEntry, WorkOrder> entries;
  TraceBuffer* trace = nullptr;  // where events are recorded, if anywhere
  std::int64_t recordings = 0;   // so far, by which spans of an earlier one are told
  std::vector<void (*)()> late;  // book what devices have done since; called before the books are read
};

inline Profile& global_profile() {
  static Profile profile;
  return profile;
}

/// To be called before the books are read or closed: has those book whose work goes on after an operator has
/// returned.
inline void book_late() {
  auto& profile = global_profile();
  std::vector<void (*)()> late;
  {
    const std::lock_guard lock(profile.mutex);
    late = profile.late;
  }
  for (const auto book_own : late) book_own();
}

}  // namespace detail

/// The entries of all operators that ran on `Profiled` values, of all threads, by name.
inline std::map<std::string, ProfileEntry, std::less<>> profile_entries() {
  std::map<std::string, ProfileEntry, std::less<>> by_name;
  detail::book_late();
  auto& profile = detail::global_profile();
  const std::lock_guard lock(profile.mutex);
  for (const auto& [work, entry] : profile.entries)
    if (entry.calls > 0) by_name[work.name] += entry;
  return by_name;
}

/// The same by name and the operands' shapes, the most expensive first.
inline std::vector<ShapedProfileEntry> profile_entries_by_shape() {
  std::vector<ShapedProfileEntry> result;
  detail::book_late();
  {
    auto& profile = detail::global_profile();
    const std::lock_guard lock(profile.mutex);
    for (const auto& [work, entry] : profile.entries)
      if (entry.calls > 0) result.push_back({entry, work.name, work.operands});
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  return result;
}

/// Starts all entries anew.
inline void reset_profile() {
  detail::book_late();
  auto& profile = detail::global_profile();
  const std::lock_guard lock(profile.mutex);
  for (auto& [work, entry] : profile.entries) entry = {};
}

}  // namespace taut
