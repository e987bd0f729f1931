#pragma once
// The profile as a table.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "profile.hpp"

namespace taut {

/// What the machine can do at most, as measured on it; 0 where that is not known. For the threads that run an
/// operator, not for one of them.
struct Peaks {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

/// The least time in seconds that the calls could take: for each of them the larger of flops /
/// flops_per_second and bytes / bytes_per_second ("roofline": Williams, Waterman and Patterson, 2009). 0 if
/// neither peak is known. Algorithms that need fewer operations than are counted, such as Winograd's for
/// convolutions, and operands that are still in a cache may stay below it.
inline double floor_seconds(const ShapedProfileEntry& entry, const Peaks& peaks) {
  const auto least = [](std::int64_t work, double peak) {
    return peak > 0 ? static_cast<double>(work) / peak : 0;
  };
  return std::max(least(entry.flops, peaks.flops_per_second), least(entry.bytes, peaks.bytes_per_second));
}

namespace detail {

struct ReportRow {
  std::string name, operands;
  ProfileEntry entry;
  double floor = 0;
};

template <class... Args> void append_formatted(std::string& text, const char* format, Args... args) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, args...);
  text += buffer;
}

inline std::string report_text(std::vector<ReportRow> rows, const Peaks& peaks) {
  if (!(peaks.flops_per_second >= 0 && peaks.bytes_per_second >= 0))
    throw Error("profile_report: the peaks must be at least 0");
  const bool with_floor = peaks.flops_per_second > 0 || peaks.bytes_per_second > 0;
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.entry.seconds != b.entry.seconds ? a.entry.seconds > b.entry.seconds : a.name < b.name;
  });
  ReportRow total{.name = "total", .operands = {}, .entry = {}};
  std::size_t width = std::string_view("operator").size();
  bool below_floor = false;
  for (const auto& row : rows) {
    total.entry += row.entry, total.floor += row.floor;
    width = std::max(width, row.name.size());
    below_floor = below_floor || row.floor > row.entry.seconds;
  }

  std::string text = "operator" + std::string(width - std::string_view("operator").size(), ' ') +
                     "    calls    total ms      mean us   share  GFLOP/s    GB/s";
  if (with_floor) text += "    floor ms  reached";
  text += "  conversions\n";
  const auto append = [&](const ReportRow& row) {
    const auto& entry = row.entry;
    const double seconds = entry.seconds, per_nano = seconds > 0 ? 1e-9 / seconds : 0;
    text += row.name + std::string(width - row.name.size(), ' ');
    append_formatted(text, " %8lld %11.3f", static_cast<long long>(entry.calls), 1e3 * seconds);
    append_formatted(text, " %12.3f", entry.calls > 0 ? 1e6 * seconds / static_cast<double>(entry.calls) : 0);
    append_formatted(text, " %6.1f%%", total.entry.seconds > 0 ? 100 * seconds / total.entry.seconds : 0);
    append_formatted(text, " %8.2f", per_nano * static_cast<double>(entry.flops));
    append_formatted(text, " %7.2f", per_nano * static_cast<double>(entry.bytes));
    if (with_floor) {
      append_formatted(text, " %11.3f", 1e3 * row.floor);
      if (row.floor > 0 && seconds > 0)
        append_formatted(text, " %7.1f%%", 100 * row.floor / seconds);
      else
        text += "        -";
    }
    append_formatted(text, " %12lld", static_cast<long long>(entry.conversions));
    text += row.operands + "\n";
  };
  for (const auto& row : rows) append(row);
  append(total);
  if (below_floor)
    text +=
        "Over 100 % is reached by algorithms that need fewer operations than are counted, such as "
        "Winograd's\n"
        "for convolutions, and by operands that are still in a cache.\n";
  return text;
}

}  // namespace detail

/// A table of the operators, the most expensive first: calls, total and mean time, share of the time,
/// GFLOP/s, GB/s, and how often operands had to be converted to another memory layout. Given peaks, also the
/// least time that the calls could take (`floor_seconds`) and what share of the total time that is. Throws
/// `Error` if a peak is negative.
inline std::string profile_report(const Peaks& peaks = {}) {
  std::map<std::string, detail::ReportRow> by_name;
  for (const auto& entry : profile_entries_by_shape()) {
    auto& row = by_name[entry.name];
    row.name = entry.name, row.entry += entry, row.floor += floor_seconds(entry, peaks);
  }
  std::vector<detail::ReportRow> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  return detail::report_text(std::move(rows), peaks);
}

/// The same with a row for each operator and the shapes of its operands, which stand at the row's end.
inline std::string profile_report_by_shape(const Peaks& peaks = {}) {
  std::vector<detail::ReportRow> rows;
  for (const auto& entry : profile_entries_by_shape()) {
    std::string operands;
    for (const Shape& shape : entry.operands) operands += (operands.empty() ? "  " : " ") + to_string(shape);
    rows.push_back({entry.name, std::move(operands), entry, floor_seconds(entry, peaks)});
  }
  return detail::report_text(std::move(rows), peaks);
}

}  // namespace taut
