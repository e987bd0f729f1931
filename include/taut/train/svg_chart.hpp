#pragma once
// Line charts in SVG, for a page of HTML whose style has the classes that are named here.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "html.hpp"

namespace taut::train {

/// One line of a chart. Where `y` is NaN or infinite it has a gap.
struct ChartLine {
  std::string name;
  std::vector<double> y;  ///< one value for each of the chart's x
};

/// Lines over a common x.
struct LineChart {
  std::string title{};
  std::string x_name{};              ///< of what the x count
  std::vector<double> x{};           ///< ascending
  std::vector<ChartLine> lines{};    ///< in the colours of the classes s0, s1, s2, …
  std::string unit{};                ///< follows each number
  bool from_zero = false;            ///< the y axis begins at 0, so that heights compare
  bool logarithmic_if_wide = false;  ///< the y axis is logarithmic if all y > 0 and they span a factor of 100
};

namespace detail {

struct Tick {
  double value;
  std::string label;
};

/// What a direction of the drawing shows.
struct Axis {
  double low = 0, high = 1;
  std::vector<Tick> ticks{};
  bool logarithmic = false;

  /// Where a value lies, from 0 at `low` to 1 at `high`.
  double position(double value) const {
    if (logarithmic) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
    return (value - low) / (high - low);
  }
};

/// The smallest of 1, 2 and 5 times a power of ten that is at least `raw`, which is positive.
inline double nice_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

inline std::string chart_number(double value, int digits,
                                std::chars_format format = std::chars_format::general) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value, format, digits).ptr};
}

/// A tick's number with the digits that tell it from the next, `step` away; `largest` is the axis' largest.
inline std::string tick_label(double value, double step, double largest) {
  if (value == 0) return "0";
  const auto last_place = static_cast<int>(std::floor(std::log10(step) + 1e-9));
  if (largest >= 1e-3 && largest < 1e7)
    return chart_number(value, std::max(0, -last_place), std::chars_format::fixed);
  const auto first_place = static_cast<int>(std::floor(std::log10(largest)));
  return chart_number(value, std::max(0, first_place - last_place), std::chars_format::scientific);
}

/// The multiples of `step` from `low` to `high`.
inline std::vector<Tick> linear_ticks(double low, double high, double step, const std::string& unit) {
  std::vector<Tick> ticks;
  const double first = std::ceil(low / step - 1e-6), last = std::floor(high / step + 1e-6);
  const double largest = std::max(std::abs(low), std::abs(high));
  for (double i = first; i <= last; ++i)
    ticks.push_back({i * step, tick_label(i * step, step, largest) + unit});
  return ticks;
}

/// An axis that ends at ticks. Values that hardly differ are shown from 0, or their noise would fill it.
inline Axis linear_axis(double low, double high, const std::string& unit, bool from_zero) {
  const bool flat = high - low <= 1e-3 * std::max(std::abs(low), std::abs(high));
  if (from_zero || flat) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  if (low == high) high = 1;
  const double step = nice_step((high - low) / 5);
  low = step * std::floor(low / step + 1e-6);
  high = step * std::ceil(high / step - 1e-6);
  return {low, high, linear_ticks(low, high, step, unit)};
}

/// An axis from power of ten to power of ten.
inline Axis logarithmic_axis(double low, double high, const std::string& unit) {
  const double first = std::floor(std::log10(low) + 1e-9), last = std::ceil(std::log10(high) - 1e-9);
  Axis axis{std::pow(10.0, first), std::pow(10.0, last), {}, true};
  const double stride = std::ceil((last - first) / 6);
  for (double place = first; place <= last; place += stride)
    axis.ticks.push_back({std::pow(10.0, place), chart_number(std::pow(10.0, place), 6) + unit});
  return axis;
}

/// An axis of numbers that count something: it ends where they do, and its ticks are whole.
inline Axis counting_axis(double low, double high) {
  const double margin = low == high ? 0.5 : 0.0;
  const double step = std::max(1.0, nice_step((high - low + 1e-9) / 10));
  return {low - margin, high + margin, linear_ticks(low, high, step, "")};
}

/// The value if it can be drawn, else NaN. Sizes at the ends of `double`'s range would overflow in axes.
inline double drawable(double value) {
  if (!(std::abs(value) <= 1e300)) return std::numeric_limits<double>::quiet_NaN();
  return std::abs(value) < 1e-300 ? 0.0 : value;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool empty() const { return low > high; }
};

/// The range of what can be drawn.
inline Range range_of(const std::vector<ChartLine>& lines) {
  Range range;
  for (const auto& line : lines) {
    for (const double y : line.y) {
      if (std::isnan(drawable(y))) continue;
      range.low = std::min(range.low, drawable(y));
      range.high = std::max(range.high, drawable(y));
    }
  }
  return range;
}

inline Axis y_axis(const LineChart& chart, const Range& range) {
  const bool wide = range.low > 0 && range.high / range.low >= 100;
  if (chart.logarithmic_if_wide && wide) return logarithmic_axis(range.low, range.high, chart.unit);
  return linear_axis(range.low, range.high, chart.unit, chart.from_zero);
}

/// The indices at which a line is drawn, in unbroken runs. Of each `group` of values its least and its
/// greatest are, so that a long line keeps its envelope; where a whole group cannot be drawn the line breaks.
inline std::vector<std::vector<std::size_t>> visible_runs(const std::vector<double>& y, std::size_t group) {
  std::vector<std::vector<std::size_t>> runs;
  bool broken = true;
  for (std::size_t begin = 0; begin < y.size(); begin += group) {
    const std::size_t end = std::min(begin + group, y.size()), none = y.size();
    std::size_t low = none, high = none;
    for (std::size_t i = begin; i < end; ++i) {
      if (std::isnan(drawable(y[i]))) continue;
      if (low == none || y[i] < y[low]) low = i;
      if (high == none || y[i] > y[high]) high = i;
    }
    if (low != none) {
      if (broken) runs.emplace_back();
      runs.back().push_back(std::min(low, high));
      if (low != high) runs.back().push_back(std::max(low, high));
    }
    broken = low == none;
  }
  return runs;
}

/// Draws one chart.
class ChartWriter {
 public:
  ChartWriter(const LineChart& chart, const Range& range)
      : chart_(chart), x_(counting_axis(chart.x.front(), chart.x.back())), y_(y_axis(chart, range)) {}

  std::string figure() const {
    std::string text = "<figure class=\"chart\"><figcaption>" + escape_html(chart_.title) + legend() +
                       "</figcaption>\n<svg viewBox=\"0 0 560 260\" role=\"img\" aria-label=\"" +
                       escape_html(chart_.title) + "\">\n" + grid();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) text += line(i);
    return text + "</svg></figure>\n";
  }

 private:
  // The area of the lines within the drawing.
  static constexpr double left = 64, right = 546, top = 12, bottom = 216;
  static constexpr std::size_t most_groups = 300, most_markers = 60;

  static std::string pixels(double value) { return chart_number(value, 1, std::chars_format::fixed); }
  double across(double x) const { return left + (right - left) * x_.position(x); }
  double down(double y) const { return bottom - (bottom - top) * y_.position(y); }
  std::string px(std::size_t i) const { return pixels(across(chart_.x[i])); }
  std::string py(double y) const { return pixels(down(drawable(y))); }

  static std::string css_class(std::size_t index) { return "s" + std::to_string(index); }

  // One line needs none: the title says what it is.
  std::string legend() const {
    std::string text;
    for (std::size_t i = 0; i < chart_.lines.size() && chart_.lines.size() > 1; ++i)
      text += " <span class=\"key " + css_class(i) + "\">" + escape_html(chart_.lines[i].name) + "</span>";
    return text;
  }

  static std::string label(std::string_view anchor, double x, double y, const std::string& text) {
    return "<text text-anchor=\"" + std::string(anchor) + "\" x=\"" + pixels(x) + "\" y=\"" + pixels(y) +
           "\">" + escape_html(text) + "</text>\n";
  }

  std::string grid() const {
    std::string rules, labels;
    for (const auto& [value, text] : y_.ticks) {
      rules += "M" + pixels(left) + " " + pixels(down(value)) + "H" + pixels(right);
      labels += label("end", left - 8, down(value) + 4, text);
    }
    for (const auto& [value, text] : x_.ticks) {
      rules += "M" + pixels(across(value)) + " " + pixels(bottom) + "v5";
      labels += label("middle", across(value), bottom + 20, text);
    }
    labels += label("middle", (left + right) / 2, bottom + 39, chart_.x_name);
    return "<path class=\"grid\" d=\"" + rules + "\"/>\n" + labels;
  }

  std::string line(std::size_t index) const {
    const auto& y = chart_.lines[index].y;
    const bool marked = y.size() <= most_markers;
    std::string path, markers;
    for (const auto& run : visible_runs(y, (y.size() + most_groups - 1) / most_groups)) {
      for (const auto i : run) {
        ((path += i == run.front() ? "M" : "L") += px(i)).append(" ").append(py(y[i]));
        if (marked) markers += marker(index, i);
      }
      if (run.size() == 1) path += "h0";  // drawn as a dot, since the ends of lines are round
    }
    return "<g class=\"" + css_class(index) + "\"><path d=\"" + path + "\"/>\n" + markers + "</g>\n";
  }

  // A point that tells its value to a pointer over it.
  std::string marker(std::size_t index, std::size_t i) const {
    const auto& [name, y] = chart_.lines[index];
    const std::string what = chart_.x_name + " " + chart_number(chart_.x[i], 12) + ", " + name + ": " +
                             chart_number(y[i], 5) + chart_.unit;
    return "<circle r=\"2.5\" cx=\"" + px(i) + "\" cy=\"" + py(y[i]) + "\"><title>" + escape_html(what) +
           "</title></circle>\n";
  }

  const LineChart& chart_;
  Axis x_, y_;
};

}  // namespace detail

/// The chart as a `<figure>` of HTML that needs no script; empty if it has nothing to draw. Up to 60 values a
/// line are marked, and tell their numbers when pointed at; lines of more than 300 are thinned to their
/// envelope, so that the size is bounded.
///
/// Throws `ShapeError` if a line has not as many values as the chart has x.
inline std::string to_html(const LineChart& chart) {
  for (const auto& line : chart.lines) {
    if (line.y.size() != chart.x.size())
      throw ShapeError("LineChart: expected " + std::to_string(chart.x.size()) +
                       " values, one for each x, in line " + line.name + ", got " +
                       std::to_string(line.y.size()));
  }
  const auto range = detail::range_of(chart.lines);
  return range.empty() ? "" : detail::ChartWriter(chart, range).figure();
}

}  // namespace taut::train
