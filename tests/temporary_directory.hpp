#pragma once
// Files of a test's own.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace taut::test {

/// An empty directory of its own, which is removed with everything in it at the end of the scope.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "taut-test-XXXXXX").string();
    if (!mkdtemp(path.data())) throw std::runtime_error("cannot make a directory such as " + path);
    path_ = path;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  operator std::string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The bytes of a file; none of one that cannot be read.
inline std::string file_contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace taut::test
