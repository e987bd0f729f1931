#pragma once
// Which classes a classifier takes for which, as a section of a page of HTML.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "html.hpp"
#include "svg_chart.hpp"

namespace taut::train::detail {

/// How often each pair of a true and a predicted class came up.
class ConfusionMatrix {
 public:
  struct Entry {
    std::size_t label, predicted;
    std::int64_t count;
  };

  ConfusionMatrix() = default;

  /// Throws `ShapeError` if there are more labels than predictions or the reverse, `Error` if one of either
  /// is not a class.
  ConfusionMatrix(std::vector<std::string> classes, std::span<const std::int64_t> labels,
                  std::span<const std::int64_t> predicted)
      : classes_(std::move(classes)), samples_(classes_.size()) {
    if (labels.size() != predicted.size())
      throw ShapeError("set_confusion: expected a prediction for each of the " +
                       std::to_string(labels.size()) + " labels, got " + std::to_string(predicted.size()));
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < labels.size(); ++i)
      pairs.emplace_back(class_index(labels[i], "labels"), class_index(predicted[i], "predictions"));
    count(std::move(pairs));
  }

  bool empty() const { return entries_.empty(); }
  const std::vector<std::string>& classes() const { return classes_; }

  /// The pairs that came up, ascending.
  const std::vector<Entry>& entries() const { return entries_; }

  /// How many samples are truly of a class.
  std::int64_t samples(std::size_t label) const { return samples_[label]; }

  /// What part of its class's samples an entry is.
  double fraction(const Entry& entry) const {
    return static_cast<double>(entry.count) / static_cast<double>(samples_[entry.label]);
  }

  /// Up to `limit` wrong pairs, the most frequent first.
  std::vector<Entry> mistakes(std::size_t limit) const {
    auto wrong = entries_;
    std::erase_if(wrong, [](const Entry& entry) { return entry.label == entry.predicted; });
    std::sort(wrong.begin(), wrong.end(), [](const Entry& a, const Entry& b) {
      if (a.count != b.count) return a.count > b.count;
      return std::pair(a.label, a.predicted) < std::pair(b.label, b.predicted);
    });
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(std::min(limit, wrong.size())), wrong.end());
    return wrong;
  }

 private:
  std::size_t class_index(std::int64_t index, const char* what) const {
    if (index >= 0 && index < static_cast<std::int64_t>(classes_.size()))
      return static_cast<std::size_t>(index);
    throw Error("set_confusion: expected " + std::string(what) + " from 0 to one less than the " +
                std::to_string(classes_.size()) + " class names, got " + std::to_string(index));
  }

  void count(std::vector<std::pair<std::size_t, std::size_t>> pairs) {
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [label, predicted] : pairs) {
      if (entries_.empty() || entries_.back().label != label || entries_.back().predicted != predicted)
        entries_.push_back({label, predicted, 0});
      ++entries_.back().count;
      ++samples_[label];
    }
  }

  std::vector<std::string> classes_;
  std::vector<std::int64_t> samples_;
  std::vector<Entry> entries_;
};

/// Writes a `ConfusionMatrix`: the table, and the most frequent mistakes in words.
class ConfusionWriter {
 public:
  explicit ConfusionWriter(const ConfusionMatrix& matrix) : matrix_(matrix) {}

  std::string html() const {
    const bool drawn = matrix_.classes().size() <= most_drawn;
    return "<div class=\"confusion\">\n" + (drawn ? table() : "") + mistakes() + "</div>\n";
  }

 private:
  static constexpr std::size_t most_numbered = 24;  // classes: more get small cells, without numbers
  static constexpr std::size_t most_drawn = 128;    // classes: of more there are only the mistakes
  static constexpr std::size_t most_mistakes = 12;

  bool numbered() const { return matrix_.classes().size() <= most_numbered; }
  std::string name(std::size_t index) const { return escape_html(matrix_.classes()[index]); }
  static std::string percent(double fraction) {
    return chart_number(100 * fraction, 1, std::chars_format::fixed) + "%";
  }

  std::string table() const {
    std::string text = "<div class=\"scroll\"><table class=\"matrix" +
                       std::string(numbered() ? "" : " dense") +
                       "\">\n<caption>Rows: true class. Columns: predicted class.</caption>\n";
    if (numbered()) text += head();
    auto entry = matrix_.entries().begin();
    for (std::size_t label = 0; label < matrix_.classes().size(); ++label) text += row(label, entry);
    return text + "</table></div>\n";
  }

  std::string head() const {
    std::string text = "<tr><td></td>";
    for (std::size_t i = 0; i < matrix_.classes().size(); ++i)
      text += "<th scope=\"col\"><span>" + name(i) + "</span></th>";
    return text + "<th scope=\"col\"><span>right</span></th></tr>\n";
  }

  /// The row of a class, whose entries begin at `entry`; moves on to those of the next.
  std::string row(std::size_t label, std::vector<ConfusionMatrix::Entry>::const_iterator& entry) const {
    std::string text = "<tr>";
    if (numbered()) text += "<th scope=\"row\">" + name(label) + "</th>";
    double right = 0;
    for (std::size_t predicted = 0; predicted < matrix_.classes().size(); ++predicted) {
      const bool present =
          entry != matrix_.entries().end() && entry->label == label && entry->predicted == predicted;
      if (!present) {
        text += "<td></td>";
        continue;
      }
      if (label == predicted) right = matrix_.fraction(*entry);
      text += cell(*entry++);
    }
    if (numbered())
      text += "<td class=\"sum\">" + (matrix_.samples(label) > 0 ? percent(right) : "") + "</td>";
    return text + "</tr>\n";
  }

  /// The colour grows with the square root, so that a mistake made with one sample in a hundred still shows.
  std::string cell(const ConfusionMatrix::Entry& entry) const {
    const double strength = std::sqrt(matrix_.fraction(entry));
    std::string text = "<td class=\"";
    text += entry.label == entry.predicted ? "hit" : "miss";
    text += strength > 0.6 ? " deep" : "";
    text += "\" style=\"--a:" + chart_number(strength, 2, std::chars_format::fixed) + "\" title=\"" +
            name(entry.label) + " taken for " + name(entry.predicted) + ": " + std::to_string(entry.count) +
            "\">";
    return text + (numbered() ? std::to_string(entry.count) : "") + "</td>";
  }

  std::string mistakes() const {
    std::string rows;
    for (const auto& entry : matrix_.mistakes(most_mistakes))
      rows += "<tr><td>" + name(entry.label) + "</td><td>" + name(entry.predicted) + "</td><td class=\"n\">" +
              std::to_string(entry.count) + "</td><td class=\"n\">" + percent(matrix_.fraction(entry)) +
              "</td></tr>\n";
    if (rows.empty()) return "<p>No sample was taken for another class.</p>\n";
    return "<table class=\"list\"><caption>Most frequent mistakes</caption>\n<tr><th>true</th>"
           "<th>predicted</th><th class=\"n\">samples</th><th class=\"n\">of the class</th></tr>\n" +
           rows + "</table>\n";
  }

  const ConfusionMatrix& matrix_;
};

}  // namespace taut::train::detail
