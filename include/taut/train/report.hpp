#pragma once
// A training run as a page to look at: curves, tables and images in one file, which any browser shows.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../io/file.hpp"
#include "confusion_matrix.hpp"
#include "history.hpp"
#include "html.hpp"
#include "predictions.hpp"
#include "report_history.hpp"
#include "report_image.hpp"
#include "report_style.hpp"

namespace taut::train {

/// What a report says besides measurements.
struct ReportOptions {
  std::string title = "Training";
  std::vector<std::pair<std::string, std::string>> settings{};  ///< names and values that reproduce the run
  std::string model{};                                          ///< its `summary`
  History earlier{};                                            ///< epochs of the run that is continued
};

/// Writes a page of HTML, as a callback: the curves and the table of the epochs so far, the settings and the
/// model; and, once the program adds them, the confusion matrix and images. The file needs no network, no
/// script and no other file, and shows in light or dark as the reader's system is set.
///
///     train::HtmlReport report{"report.html", {.title = "LeNet on MNIST",
///                                              .settings = {{"--lr", "0.1"}, {"--seed", "1"}},
///                                              .model = summary(model)}};
///     train::fit(model, sgd, train_loader, test_loader, {.epochs = 10}, report);
///
///     train::Predictions predictions;
///     for (const auto& batch : test_loader)  // which does not shuffle
///       predictions.add(network(batch.tensor<CpuArray>()).to_host(), batch.labels);
///     report.set_confusion(names, predictions.labels, predictions.predicted);
///     report.set_images(images);  // of the samples predictions.worst(24)
///     report.write();
///
/// The file is written anew after each epoch, and replaced in one step: at any moment it is whole, also if
/// the run is killed. Its size is bounded: of long runs the curves are thinned and the table is of every
/// n-th epoch; a `CsvLog` has them all.
///
/// Values that were not measured (NaN) or are infinite are gaps in the curves.
class HtmlReport {
 public:
  /// Writes the page, without measurements yet. Throws `DataError` if it cannot be written: before the
  /// training, not after it.
  explicit HtmlReport(std::string path, ReportOptions options = {})
      : path_(std::move(path)), options_(std::move(options)), history_(std::move(options_.earlier)) {
    write();
  }

  /// Adds an epoch and writes the page. An epoch that was there already, or later ones, are dropped first:
  /// the run was continued from before them. Throws `DataError` if the page cannot be written; the old one
  /// then stays.
  void on_epoch(const EpochResult& result) {
    while (!history_.empty() && history_.back().epoch >= result.epoch) history_.pop_back();
    history_.push_back(result);
    write();
  }

  /// Shows how often samples of each true class were predicted as each class: `labels` are the true classes
  /// of samples and `predicted` what they were taken for, both counted from 0 in `class_names`. Replaces what
  /// was set before.
  ///
  /// Up to 24 classes are shown in numbers and up to 128 in colours; the most frequent mistakes always are.
  /// Throws `ShapeError` if there are not as many predictions as labels, `Error` if one is not a class.
  void set_confusion(std::vector<std::string> class_names, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> predicted) {
    confusion_ = detail::ConfusionMatrix(std::move(class_names), labels, predicted);
  }

  /// Shows test images that were classified worst, in this order; their pixels become part of the page, those
  /// of images larger than 192 pixels shrunk. Replaces what was set before. Throws `ShapeError` if an image's
  /// shape is none of an image, or its pixels are not as many.
  void set_images(std::span<const ReportImage> images) {
    std::string text;
    for (const auto& image : images) text += detail::to_html(image);
    images_ = std::move(text);
  }

  /// Writes the page as it is now. Throws `DataError` if it cannot be; the old one then stays.
  void write() const {
    io::ReplacementFile file(path_);
    const std::string page = html();
    file.write(std::as_bytes(std::span(page)));
    file.commit();
  }

  const std::string& path() const { return path_; }

 private:
  static std::string section(std::string_view title, const std::string& content) {
    return content.empty() ? "" : "<h2>" + std::string(title) + "</h2>\n" + content;
  }

  std::string html() const {
    const std::string title = detail::escape_html(options_.title);
    return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           title + "</title>\n<style>" + std::string(detail::report_style) + "</style></head>\n<body>\n<h1>" +
           title + "</h1>\n" + curves() + confusion() + images() + section("Settings", settings()) +
           section("Model", model()) + section("Epochs", epochs()) + "</body></html>\n";
  }

  std::string curves() const {
    if (history_.empty()) return "<p class=\"note\">No epoch has ended yet.</p>\n";
    const detail::HistoryWriter writer(history_);
    return writer.tiles() + section("Curves", writer.charts());
  }

  std::string confusion() const {
    if (confusion_.empty()) return "";
    return section("Confusion matrix", detail::ConfusionWriter(confusion_).html());
  }

  std::string images() const {
    if (images_.empty()) return "";
    return section("Worst-classified test images",
                   "<p class=\"note\">Above the true class and below the predicted one, each with the "
                   "probability that the model gives it.</p>\n<div class=\"images\">\n" +
                       images_ + "</div>\n");
  }

  std::string settings() const {
    std::string rows;
    for (const auto& [name, value] : options_.settings)
      rows += "<tr><th>" + detail::escape_html(name) + "</th><td class=\"text\">" +
              detail::escape_html(value) + "</td></tr>\n";
    return rows.empty() ? "" : "<table class=\"list\">\n" + rows + "</table>\n";
  }

  std::string model() const {
    if (options_.model.empty()) return "";
    return "<pre class=\"pane\">" + detail::escape_html(options_.model) + "</pre>\n";
  }

  std::string epochs() const { return history_.empty() ? "" : detail::HistoryWriter(history_).table(); }

  std::string path_;
  ReportOptions options_;
  History history_;
  detail::ConfusionMatrix confusion_;
  std::string images_;  // as HTML
};

}  // namespace taut::train
