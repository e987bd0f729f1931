#pragma once
// A training run as a table on disk: a header, then one row an epoch.

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../core/error.hpp"
#include "history.hpp"

namespace taut::train {

/// What a log does with a file that is already there.
enum class CsvMode {
  create,  ///< replaces it
  append   ///< adds rows to it, for a resumed run; a file that is missing or empty gets a header first
};

namespace detail {

struct CsvColumn {
  std::string_view name;
  double EpochResult::*value;
};

// The columns after `epoch`. Header and rows both come from this table.
inline constexpr std::array csv_columns{
    CsvColumn{"train_loss", &EpochResult::train_loss},
    CsvColumn{"train_accuracy", &EpochResult::train_accuracy},
    CsvColumn{"test_loss", &EpochResult::test_loss},
    CsvColumn{"test_accuracy", &EpochResult::test_accuracy},
    CsvColumn{"learning_rate", &EpochResult::learning_rate},
    CsvColumn{"seconds", &EpochResult::seconds},
    CsvColumn{"samples_per_second", &EpochResult::samples_per_second},
};

/// The shortest digits that read back as exactly `value`, with a point in every locale; `nan` and `inf` as
/// such.
inline std::string csv_number(double value) {
  if (value != value) return "nan";  // never "-nan"
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

inline std::string csv_header() {
  std::string text = "epoch";
  for (const auto& column : csv_columns) (text += ',') += column.name;
  return text;
}

inline std::string csv_row(const EpochResult& result) {
  std::string text = std::to_string(result.epoch);
  for (const auto& column : csv_columns) (text += ',') += csv_number(result.*column.value);
  return text;
}

}  // namespace detail

/// Writes an `EpochResult` a row. Each row is handed to the operating system whole before `on_epoch` returns,
/// so a run that is killed keeps the rows of all epochs that had ended. Numbers are written with as many
/// digits as reading them back exactly takes, whatever the locale; a quantity that was not measured is `nan`.
///
///     train::CsvLog log{"run.csv"};                             // replaces an earlier run.csv
///     train::CsvLog log{"run.csv", train::CsvMode::append};     // continues it
///
/// A run resumed from a checkpoint may repeat epochs that are in the file already; of equal epochs the last
/// row counts.
class CsvLog {
 public:
  /// Opens the file and makes sure of its header. Throws `DataError` if it cannot be opened or written, and
  /// when appending also if the file has another header or a last row that was cut short; it is then left as
  /// it was.
  explicit CsvLog(std::string path, CsvMode mode = CsvMode::create) : path_(std::move(path)) {
    const bool has_header = mode == CsvMode::append && check_existing();
    open(mode == CsvMode::append ? "ab" : "wb");
    if (!has_header) write_line(detail::csv_header());
  }

  /// Appends a row. Throws `DataError` if it cannot be written, for instance because the disk is full.
  void on_epoch(const EpochResult& result) { write_line(detail::csv_row(result)); }

  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_, -1, "csv log: " + what + ": " + std::strerror(errno));
  }

  void open(const char* how) {
    file_ = File(std::fopen(path_.c_str(), how));
    if (!file_) fail("cannot open the file for writing");
  }

  // Whether there is a file to continue: its header is right and its last line complete. False if there is
  // none.
  bool check_existing() const {
    const File file(std::fopen(path_.c_str(), "rb"));
    if (!file && errno == ENOENT) return false;
    if (!file) fail("cannot open the file to continue it");
    const std::string first_line = read_line(file.get());
    if (std::ferror(file.get())) fail("cannot read the file to continue it");
    if (first_line.empty() && std::feof(file.get())) return false;
    require_same_header(first_line);
    require_complete_last_line(file.get());
    return true;
  }

  // The first line, or as much of it as tells whether it is the header.
  static std::string read_line(std::FILE* file) {
    std::string line;
    for (int c; line.size() <= detail::csv_header().size() && (c = std::fgetc(file)) != EOF && c != '\n';)
      line += static_cast<char>(c);
    return line;
  }

  void require_same_header(const std::string& line) const {
    if (line == detail::csv_header()) return;
    throw DataError(path_, 0,
                    "csv log: the columns differ: expected " + detail::csv_header() +
                        ", the file begins with " + line +
                        "; log to another file, or replace this one with CsvMode::create");
  }

  void require_complete_last_line(std::FILE* file) const {
    if (std::fseek(file, -1, SEEK_END) == 0 && std::fgetc(file) == '\n') return;
    throw DataError(path_, std::ftell(file),
                    "csv log: the last row was cut short; complete or delete it to continue the file");
  }

  // The line goes out as one write, so a crash can hardly cut it.
  void write_line(const std::string& text) {
    const std::string line = text + '\n';
    const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
    if (!written || std::fflush(file_.get()) != 0) fail("cannot write a row");
  }

  std::string path_;
  File file_;
};

}  // namespace taut::train
