#pragma once
// Finding the files of data sets.

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"

namespace taut::data::detail {

inline bool path_exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

inline bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The names in a directory, sorted by their bytes, without `.` and `..`. Throws `DataError` if it cannot be
// read.
inline std::vector<std::string> list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), &closedir);
  if (!directory) {
    throw DataError(path, -1, std::string("cannot open the directory: ") + std::strerror(errno));
  }
  std::vector<std::string> names;
  while (const auto* const entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The path of the first of `names` that exists, or an empty string.
inline std::string find_file(const std::string& directory, std::span<const std::string> names) {
  for (const auto& name : names) {
    std::string path = directory + "/" + name;
    if (path_exists(path)) return path;
  }
  return {};
}

// The same, but throws a `DataError` if none exists. It begins with `reader` and ends with `advice`.
inline std::string require_file(const std::string& reader, const std::string& directory,
                                std::span<const std::string> names, const std::string& advice) {
  if (auto path = find_file(directory, names); !path.empty()) return path;
  std::string message = reader + ": ";
  if (!path_exists(directory)) {
    message += "the directory does not exist";
  } else {
    message += "the directory has no file";
    for (const auto& name : names) message += (&name == names.data() ? " " : " or ") + name;
  }
  throw DataError(directory, -1, message + ". " + advice);
}

}  // namespace taut::data::detail
