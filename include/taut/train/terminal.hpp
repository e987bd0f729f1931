#pragma once
// What the place that a program writes to can show: a terminal, and which, or a file or pipe.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>

#if __has_include(<unistd.h>) && __has_include(<sys/ioctl.h>)
#include <sys/ioctl.h>
#include <unistd.h>
#define TAUT_HAS_TERMINAL_CONTROL 1
#else
#define TAUT_HAS_TERMINAL_CONTROL 0
#endif

namespace taut::train {

namespace detail {

inline std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Whether text is encoded in UTF-8, by the first of the locale's variables that is set.
inline bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

inline bool is_terminal(int fd) {
#if TAUT_HAS_TERMINAL_CONTROL
  return fd >= 0 && isatty(fd) == 1 && environment("TERM") != "dumb";
#else
  return fd < 0 && false;
#endif
}

// The columns of the terminal at `fd` now (its window may have been resized), or `otherwise` if it has none.
inline int columns_of(int fd, int otherwise) {
#if TAUT_HAS_TERMINAL_CONTROL
  winsize size{};
  if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
#else
  (void)fd;
#endif
  return otherwise;
}

}  // namespace detail

/// What can be shown where a stream ends. The default is a file or pipe: plain text, line by line.
struct Terminal {
  bool interactive = false;  ///< a line can be drawn over
  bool utf8 = false;         ///< block characters can be shown
  bool color = false;        ///< escape sequences for colours are understood and wanted
  int width = 80;            ///< columns, where the terminal itself does not tell
  int fd = -1;               ///< asked for its width at each drawing; -1: `width` is right

  /// The columns at this moment.
  int columns() const { return detail::columns_of(fd, width); }

  /// What is at a file descriptor: interactive if it is a terminal and `TERM` is not `dumb`; UTF-8 by
  /// `LC_ALL`, `LC_CTYPE` or `LANG`; in colour unless `NO_COLOR` is set to anything (https://no-color.org).
  static Terminal detect(int fd) {
    Terminal terminal;
    terminal.interactive = detail::is_terminal(fd);
    terminal.utf8 = detail::locale_is_utf8();
    terminal.color = terminal.interactive && detail::environment("NO_COLOR").empty();
    terminal.fd = terminal.interactive ? fd : -1;
    return terminal;
  }
};

}  // namespace taut::train
