#pragma once
// Every exception that Taut throws derives from `taut::Error`. A message starts with the operator or the
// function, states what was expected and what came, and says what to do.

#if __cplusplus < 202002L
#error "Taut needs C++20: compile with -std=c++20 or newer"
#endif

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace taut {

/// The base of all exceptions thrown by Taut.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Operand shapes, or the options of an operator, do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

namespace detail {
/// Throws an `Error`; apart from the templates that call it, so that they stay small.
[[noreturn, gnu::cold]] inline void throw_error(std::string_view subject, std::string_view message) {
  throw Error(std::string(subject).append(subject.empty() ? "" : ": ").append(message));
}
}  // namespace detail

/// A file or data set is missing, damaged or not of the expected kind.
class DataError : public Error {
 public:
  /// `offset` is the byte position in `path` at which the fault was found, or -1 if it has none.
  DataError(std::string path, std::int64_t offset, const std::string& message)
      : Error(path + (offset >= 0 ? " (byte " + std::to_string(offset) + ")" : "") + ": " + message),
        path_(std::move(path)),
        offset_(offset) {}

  const std::string& path() const { return path_; }
  std::int64_t offset() const { return offset_; }

 private:
  std::string path_;
  std::int64_t offset_;
};

/// A call to a device's library failed.
class DeviceError : public Error {
 public:
  /// `meaning`, if it is known, says what the code stands for or what to do.
  DeviceError(const std::string& call, int code, const std::string& meaning = "")
      : Error(meaning + (meaning.empty() ? "" : " (") + call + " failed with code " + std::to_string(code) +
              (meaning.empty() ? "" : ")")),
        code_(code) {}

  int code() const { return code_; }

 private:
  int code_;
};

}  // namespace taut
