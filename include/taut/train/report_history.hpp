#pragma once
// The epochs of a run as parts of a page of HTML.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "history.hpp"
#include "progress.hpp"
#include "svg_chart.hpp"

namespace taut::train::detail {

/// A quantity of an epoch as a column of a table.
struct EpochColumn {
  std::string_view name;
  double EpochResult::*value;
  std::string (*text)(double);
};

inline constexpr EpochColumn epoch_columns[] = {
    {"train loss", &EpochResult::train_loss, loss_text},
    {"train accuracy", &EpochResult::train_accuracy, percent_text},
    {"test loss", &EpochResult::test_loss, loss_text},
    {"test accuracy", &EpochResult::test_accuracy, percent_text},
    {"learning rate", &EpochResult::learning_rate,
     [](double rate) { return number(rate, 4, std::chars_format::general); }},
    {"time", &EpochResult::seconds, [](double seconds) { return number(seconds, 1) + " s"; }},
    {"samples/s", &EpochResult::samples_per_second, magnitude_text},
};

inline bool was_measured(const History& history, double EpochResult::*value) {
  return std::ranges::any_of(history, [&](const auto& epoch) { return !std::isnan(epoch.*value); });
}

/// Writes the parts of a page that come from a `History`.
class HistoryWriter {
 public:
  explicit HistoryWriter(const History& history) : history_(history) {}

  /// The figures that one looks for first.
  std::string tiles() const {
    std::string text = "<div class=\"tiles\">\n" +
                       tile(history_.size() == 1 ? "epoch" : "epochs", std::to_string(history_.size()));
    const auto best = std::ranges::max_element(history_, {}, [](const auto& epoch) {
      return std::isnan(epoch.test_accuracy) ? -1.0 : epoch.test_accuracy;
    });
    if (was_measured(history_, &EpochResult::test_accuracy))
      text +=
          tile("best test accuracy, epoch " + std::to_string(best->epoch), percent_text(best->test_accuracy));
    if (!history_.empty()) text += tile("last train loss", loss_text(history_.back().train_loss));
    if (was_measured(history_, &EpochResult::seconds))
      text += tile("time of training", duration_text(total(&EpochResult::seconds)));
    return text + "</div>\n";
  }

  std::string charts() const {
    const auto loss = lines({{"train", &EpochResult::train_loss}, {"test", &EpochResult::test_loss}});
    const auto accuracy =
        lines({{"train", &EpochResult::train_accuracy}, {"test", &EpochResult::test_accuracy}}, 100);
    const auto rate = lines({{"learning rate", &EpochResult::learning_rate}});
    const auto speed = lines({{"samples/s", &EpochResult::samples_per_second}});
    return "<div class=\"charts\">\n" + draw({.title = "Loss", .lines = loss, .logarithmic_if_wide = true}) +
           draw({.title = "Accuracy", .lines = accuracy, .unit = "%"}) +
           draw({.title = "Learning rate", .lines = rate, .from_zero = true}) +
           draw({.title = "Samples per second", .lines = speed, .from_zero = true}) + "</div>\n";
  }

  /// A row an epoch; of many, evenly spaced ones and the last.
  std::string table() const {
    const std::size_t stride = (history_.size() + most_rows - 1) / most_rows;
    std::string text = "<div class=\"pane\"><table class=\"list\">\n";
    if (stride > 1) text += "<caption>One in " + std::to_string(stride) + " epochs, and the last</caption>\n";
    text += head();
    for (std::size_t i = 0; i < history_.size(); ++i)
      if (i % stride == 0 || i + 1 == history_.size()) text += row(history_[i]);
    return text + "</table></div>\n";
  }

 private:
  static constexpr std::size_t most_rows = 200;

  static std::string tile(const std::string& name, const std::string& value) {
    return "<div class=\"tile\"><b>" + value + "</b><span>" + name + "</span></div>\n";
  }

  double total(double EpochResult::*value) const {
    double sum = 0;
    for (const auto& epoch : history_) sum += std::isnan(epoch.*value) ? 0 : epoch.*value;
    return sum;
  }

  struct Quantity {
    const char* name;
    double EpochResult::*value;
  };

  // Those of the quantities that were measured.
  std::vector<ChartLine> lines(std::initializer_list<Quantity> quantities, double factor = 1) const {
    std::vector<ChartLine> result;
    for (const auto& [name, value] : quantities) {
      if (!was_measured(history_, value)) continue;
      ChartLine line{name, {}};
      for (const auto& epoch : history_) line.y.push_back(factor * epoch.*value);
      result.push_back(std::move(line));
    }
    return result;
  }

  std::string draw(LineChart chart) const {
    chart.x_name = "epoch";
    for (const auto& epoch : history_) chart.x.push_back(epoch.epoch);
    return train::to_html(chart);
  }

  std::string head() const {
    std::string text = "<tr><th class=\"n\">epoch</th>";
    for (const auto& column : epoch_columns)
      if (was_measured(history_, column.value))
        text += "<th class=\"n\">" + std::string(column.name) + "</th>";
    return text + "</tr>\n";
  }

  std::string row(const EpochResult& epoch) const {
    std::string text = "<tr><td class=\"n\">" + std::to_string(epoch.epoch) + "</td>";
    for (const auto& column : epoch_columns)
      if (was_measured(history_, column.value))
        text += "<td class=\"n\">" + cell(column, epoch.*column.value) + "</td>";
    return text + "</tr>\n";
  }

  static std::string cell(const EpochColumn& column, double value) {
    return std::isnan(value) ? "nan" : column.text(value);
  }

  const History& history_;
};

}  // namespace taut::train::detail
