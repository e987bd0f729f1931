#pragma once
// `ProgressBar`: shows a running training on a stream. On a terminal it is one line that is drawn over; in a
// file or pipe, plain lines.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "history.hpp"
#include "terminal.hpp"

namespace taut::train {

namespace detail {

// `value` with a point in every locale: `digits` after it if `fixed`, else `digits` significant ones.
inline std::string number(double value, int digits, std::chars_format format = std::chars_format::fixed) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  char text[400];                       // the largest double has 309 digits before the point
  return {text, std::to_chars(text, text + sizeof text, value, format, digits).ptr};
}

inline std::string loss_text(double loss) { return number(loss, 4, std::chars_format::general); }
inline std::string percent_text(double fraction) { return number(100 * fraction, 2) + "%"; }

// 950, 51.2k, 1.3M
inline std::string magnitude_text(double value) {
  std::string_view unit = "";
  for (const std::string_view larger : {"k", "M", "G"}) {
    if (value < 1000) break;
    value /= 1000;
    unit = larger;
  }
  return number(value, unit.empty() && value >= 10 ? 0 : 1).append(unit);
}

// 0:07, 12:34, 1:02:03
inline std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const auto hours = total / 3600, minutes = total / 60 % 60;
  return (hours > 0 ? std::to_string(hours) + ":" + two(minutes) : std::to_string(minutes)) + ":" +
         two(total % 60);
}

inline std::string epoch_text(int epoch, int epochs) {
  if (epochs <= 0) return "epoch " + std::to_string(epoch);
  const auto total = std::to_string(epochs);
  auto text = std::to_string(epoch);
  text.insert(0, text.size() < total.size() ? total.size() - text.size() : 0, ' ');
  return "epoch " + text + "/" + total;
}

}  // namespace detail

/// One epoch as a line of text, without the quantities that were not measured:
/// `epoch  3/10  loss 0.123  accuracy 96.12%  test loss 0.13  test accuracy 95.80%  1.2 s  51.2k samples/s`.
/// `epochs` is how many there will be, 0 if that is not known.
inline std::string summary(const EpochResult& result, int epochs = 0) {
  using namespace detail;
  std::string text = epoch_text(result.epoch, epochs) + "  loss " + loss_text(result.train_loss);
  const auto add = [&](double value, std::string_view label, const std::string& shown) {
    if (!std::isnan(value)) ((text += "  ") += label) += shown;
  };
  add(result.train_accuracy, "accuracy ", percent_text(result.train_accuracy));
  // A test loss that diverged is shown too: it was measured if the accuracy was.
  if (!std::isnan(result.test_loss) || !std::isnan(result.test_accuracy))
    text += "  test loss " + loss_text(result.test_loss);
  add(result.test_accuracy, "test accuracy ", percent_text(result.test_accuracy));
  add(result.seconds, "", number(result.seconds, 1) + " s");
  add(result.samples_per_second, "", magnitude_text(result.samples_per_second) + " samples/s");
  return text;
}

/// How a `ProgressBar` behaves.
struct ProgressOptions {
  Terminal terminal{};          ///< what the stream leads to
  double redraw_seconds = 0.1;  ///< least time between two drawings on a terminal
  double line_seconds = 30.0;   ///< least time between two lines within an epoch elsewhere; infinite for none
  double (*clock)() = detail::steady_seconds;  ///< the time in seconds, from any origin
};

/// Shows a training on a stream, as a callback. After each epoch it writes its `summary` as a line. Between,
/// on a terminal, one line is drawn over with a bar, the running loss and accuracy, the time left in this
/// pass and the samples per second; elsewhere such a line is added now and then. Between two drawings a batch
/// costs a reading of the clock and a few additions. Errors of the stream are ignored: a training does not
/// fail for its display.
///
///     train::ProgressBar bar{std::cout};
///
/// Not to be shared between threads. The stream must outlive the bar.
class ProgressBar {
 public:
  /// On `std::cout`, `std::cerr` or `std::clog`, what these lead to decides; other streams get plain lines.
  explicit ProgressBar(std::ostream& out) : ProgressBar(out, {Terminal::detect(descriptor_of(out))}) {}

  ProgressBar(std::ostream& out, const ProgressOptions& options) : out_(out), options_(options) {}

  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Ends a line that is still being drawn, so that what is written next starts on its own.
  ~ProgressBar() {
    if (drawn_columns_ > 0) write("\n");
  }

  void on_batch(const BatchEvent& event) {
    const double now = options_.clock();
    if (begins_pass(event)) begin_pass(event, now);
    loss_.add(event.loss, event.samples);
    accuracy_.add(event.accuracy, event.samples);
    last_ = event;
    if (now >= next_drawing_) draw(now);
  }

  void on_epoch(const EpochResult& result) {
    const std::string text = summary(result, last_.epochs);
    options_.terminal.interactive ? overwrite(text, text.size()) : write(text);
    write("\n");
    drawn_columns_ = 0;
    last_.epoch = 0;  // the next batch begins a pass, whatever it is
  }

 private:
  static int descriptor_of(const std::ostream& out) {
    return &out == &std::cout ? 1 : &out == &std::cerr || &out == &std::clog ? 2 : -1;
  }

  bool begins_pass(const BatchEvent& event) const {
    return event.phase != last_.phase || event.epoch != last_.epoch || event.batch <= last_.batch;
  }

  // Speeds are measured from the end of the pass's first batch, the first moment that is known.
  void begin_pass(const BatchEvent& event, double now) {
    loss_ = accuracy_ = {};
    begin_ = {now, event.batch, event.samples};
    next_drawing_ = options_.terminal.interactive ? now : now + options_.line_seconds;
  }

  void draw(double now) {
    if (options_.terminal.interactive) {
      draw_bar(now);
      next_drawing_ = now + options_.redraw_seconds;
    } else {
      std::string line = title() + "  batch " + std::to_string(last_.batch);
      if (last_.batches > 0) line += "/" + std::to_string(last_.batches);
      for (const auto& field : fields(now)) line += "  " + field;
      write(line + "\n");
      next_drawing_ = now + options_.line_seconds;
    }
  }

  std::string title() const {
    return detail::epoch_text(last_.epoch, last_.epochs) + (last_.phase == Phase::test ? " test" : "");
  }

  // What is known of this pass, the most important first.
  std::vector<std::string> fields(double now) const {
    std::vector<std::string> result{"loss " + detail::loss_text(loss_.value())};
    if (!std::isnan(accuracy_.value()))
      result.push_back("accuracy " + detail::percent_text(accuracy_.value()));
    const double elapsed = now - begin_.time;
    const auto batches = last_.batch - begin_.batch;
    if (elapsed <= 0 || batches <= 0) return result;
    if (last_.batches > 0)
      result.push_back("eta " + detail::duration_text(elapsed / static_cast<double>(batches) *
                                                      static_cast<double>(last_.batches - last_.batch)));
    result.push_back(detail::magnitude_text(static_cast<double>(loss_.samples() - begin_.samples) / elapsed) +
                     "/s");
    return result;
  }

  // As many fields as fit beside a bar of a few cells, and the bar in the room that is left.
  void draw_bar(double now) {
    constexpr std::size_t least_cells = 8, most_cells = 30, frame = 3;  // the frame: a space and two brackets
    const auto room = static_cast<std::size_t>(std::max(options_.terminal.columns() - 1, 1));
    const bool has_end = last_.batches > 0;
    const std::string left = title();
    std::string right = has_end ? "  " + detail::number(std::floor(100 * done()), 0) + "%"
                                : "  batch " + std::to_string(last_.batch);
    for (const auto& field : fields(now)) {
      if (left.size() + right.size() + 2 + field.size() + (has_end ? frame + least_cells : 0) > room) break;
      right += "  " + field;
    }
    const std::size_t used = left.size() + right.size() + frame;
    if (has_end && used + least_cells <= room) {
      const std::size_t cells = std::min(room - used, most_cells);
      overwrite(left + " [" + bar(cells) + "]" + right, used + cells);
    } else {
      const std::string text = (left + right).substr(0, room);
      overwrite(text, text.size());
    }
  }

  double done() const {
    return std::clamp(static_cast<double>(last_.batch) / static_cast<double>(last_.batches), 0.0, 1.0);
  }

  std::string bar(std::size_t cells) const {
    const auto& terminal = options_.terminal;
    const auto filled = static_cast<std::size_t>(done() * static_cast<double>(cells));
    std::string text = terminal.color ? "\x1b[32m" : "";
    for (std::size_t i = 0; i < cells; ++i) text += cell(i < filled);
    return text + (terminal.color ? "\x1b[0m" : "");
  }

  const char* cell(bool filled) const {
    if (options_.terminal.utf8) return filled ? "\u2588" : "\u2591";
    return filled ? "#" : ".";
  }

  // Draws over the current line with text of so many columns; blanks hide the rest of a longer one.
  void overwrite(const std::string& text, std::size_t columns) {
    write("\r" + text + std::string(drawn_columns_ > columns ? drawn_columns_ - columns : 0, ' '));
    drawn_columns_ = columns;
  }

  void write(std::string_view text) noexcept {
    try {
      out_.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
    } catch (const std::ios_base::failure&) {
      // A stream set to throw; see the class comment.
    }
  }

  struct Begin {
    double time = 0.0;
    std::int64_t batch = 0, samples = 0;
  };

  std::ostream& out_;
  ProgressOptions options_;
  BatchEvent last_{.epoch = 0, .epochs = 0};
  Begin begin_;
  RunningMean loss_, accuracy_;
  double next_drawing_ = 0.0;
  std::size_t drawn_columns_ = 0;  // of the line that the next drawing replaces
};

}  // namespace taut::train
