#pragma once
// `Profiled<T>`: computes as T does and books the time of each operator under its name.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "shape_tensor.hpp"
#include "wrapper.hpp"

namespace taut {

/// What one operator has taken so far.
struct ProfileEntry {
  std::int64_t calls = 0;
  double seconds = 0;
  std::int64_t flops = 0;
  std::int64_t conversions = 0;  ///< of operands from one memory layout to another, which a leaf may count
};

namespace detail {

/// How many conversions of layouts the leaf has counted so far.
template <class Leaf> std::int64_t layout_conversions() {
  if constexpr (requires { Leaf::layout_conversions(); })
    return Leaf::layout_conversions();
  else
    return 0;
}

struct Profile {
  std::mutex mutex;
  std::map<std::string, ProfileEntry, std::less<>> entries;
};

inline Profile& global_profile() {
  static Profile profile;
  return profile;
}

inline void book(std::string_view name, const ProfileEntry& entry) {
  auto& profile = global_profile();
  const std::lock_guard lock(profile.mutex);
  auto found = profile.entries.find(name);
  if (found == profile.entries.end())
    found = profile.entries.emplace(std::string(name), ProfileEntry{}).first;
  found->second.calls += entry.calls;
  found->second.seconds += entry.seconds;
  found->second.flops += entry.flops;
  found->second.conversions += entry.conversions;
}

}  // namespace detail

/// The entries of all operators that ran on `Profiled` values, of all threads, by name.
inline std::map<std::string, ProfileEntry, std::less<>> profile_entries() {
  auto& profile = detail::global_profile();
  const std::lock_guard lock(profile.mutex);
  return profile.entries;
}

/// Forgets all entries.
inline void reset_profile() {
  auto& profile = detail::global_profile();
  const std::lock_guard lock(profile.mutex);
  profile.entries.clear();
}

/// A T whose operators are timed.
template <class T> class Profiled : public Wrapper<Profiled<T>, T> {
 public:
  using Wrapper<Profiled<T>, T>::Wrapper;
};

template <class X> inline constexpr bool is_profiled = false;
template <class T> inline constexpr bool is_profiled<Profiled<T>> = true;

/// The meaning of every operator for `Profiled<T>`: T's, timed.
template <class Op, class... Xs>
requires is_profiled<OutermostOf<Xs...>>
auto eval(const Op& op, Xs&&... xs) -> WrappedResult<OutermostOf<Xs...>, Op, Xs...> {
  using P = OutermostOf<Xs...>;
  using Leaf = std::remove_cvref_t<decltype(leaf_value(std::declval<const P&>()))>;
  ProfileEntry entry{.calls = 1, .flops = count_flops(op, Shape(xs.shape())...)};
  const auto conversions = detail::layout_conversions<Leaf>();
  const auto start = std::chrono::steady_clock::now();
  auto result = eval(op, unwrap_operand<P>(std::forward<Xs>(xs))...);
  entry.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  entry.conversions = detail::layout_conversions<Leaf>() - conversions;
  detail::book(Op::name, entry);
  return WrappedResult<P, Op, Xs...>(std::move(result));
}

/// A table of the entries, the most expensive first: calls, total and mean time, share, GFLOP/s, and how
/// often operands had to be converted to another memory layout.
inline std::string profile_report() {
  const auto entries = profile_entries();
  std::multimap<double, std::pair<std::string, ProfileEntry>, std::greater<>> by_time;
  double total = 0;
  for (const auto& [name, entry] : entries) {
    by_time.emplace(entry.seconds, std::pair(name, entry));
    total += entry.seconds;
  }
  char line[128];
  std::snprintf(line, sizeof line, "%-24s %10s %12s %12s %7s %10s %11s\n", "operator", "calls", "total ms",
                "mean us", "share", "GFLOP/s", "conversions");
  std::string text = line;
  for (const auto& [seconds, named] : by_time) {
    const auto& [name, entry] = named;
    std::snprintf(line, sizeof line, "%-24.24s %10lld %12.3f %12.3f %6.1f%% %10.2f %11lld\n", name.c_str(),
                  static_cast<long long>(entry.calls), 1e3 * seconds,
                  1e6 * seconds / static_cast<double>(entry.calls), total > 0 ? 100 * seconds / total : 0,
                  seconds > 0 ? 1e-9 * static_cast<double>(entry.flops) / seconds : 0,
                  static_cast<long long>(entry.conversions));
    text += line;
  }
  return text;
}

}  // namespace taut
