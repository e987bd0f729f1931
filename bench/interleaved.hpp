#pragma once
// Timing of variants in turn, so that they meet the same machine: shared machines are noisy, and only ratios
// taken pair by pair mean anything.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace bench {

inline double seconds_per_call(const std::function<void()>& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds a call of each variant, round by round.
using Rounds = std::vector<std::vector<double>>;

inline Rounds run_in_turn(const std::vector<std::function<void()>>& variants, int calls, int rounds = 15) {
  Rounds seconds(variants.size());
  for (const auto& variant : variants) seconds_per_call(variant, calls);  // warm up
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < variants.size(); ++i)
      seconds[i].push_back(seconds_per_call(variants[i], calls));
  return seconds;
}

/// The median over the rounds of one variant's time by another's.
inline double median_ratio(const Rounds& seconds, std::size_t numerator, std::size_t denominator) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < seconds[numerator].size(); ++round)
    ratios.push_back(seconds[numerator][round] / seconds[denominator][round]);
  return median(std::move(ratios));
}

}  // namespace bench
