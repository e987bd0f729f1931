#pragma once
// Files as checkpoints need them: read whole, replaced whole or not at all. POSIX.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "../core/error.hpp"

namespace taut::io {
namespace detail {

/// Throws the `DataError` of a system call that has just failed: "<what> <the meaning of errno>".
[[noreturn]] inline void throw_errno(const std::string& path, const char* what) {
  const int code = errno;
  throw DataError(path, -1, what + std::string(std::strerror(code)));
}

/// Writes all the bytes. Returns false, with errno set, if the system refuses some of them.
inline bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

/// An open file, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  int get() const { return fd_; }

  /// Returns false, with errno set, if the system reports a late failure of writing.
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

}  // namespace detail

/// A regular file, read from front to back.
class InputFile {
 public:
  /// Opens `path`. Throws a `DataError` if it cannot be opened or is not a regular file.
  explicit InputFile(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status = {};
    if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) detail::throw_errno(path_, "cannot open: ");
    if (!S_ISREG(status.st_mode)) throw DataError(path_, -1, "cannot read: not a regular file");
    size_ = status.st_size;
  }

  const std::string& path() const { return path_; }

  /// The size in bytes when the file was opened.
  std::int64_t size() const { return size_; }

  /// Fills `out` with the next bytes. Throws a `DataError` if the file ends before, or cannot be read.
  void read(std::span<std::byte> out) {
    while (!out.empty()) {
      const auto count = ::read(file_.get(), out.data(), out.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) detail::throw_errno(path_, "cannot read: ");
      if (count == 0) throw DataError(path_, position_, "the file is truncated: it ends here");
      position_ += count;
      out = out.subspan(static_cast<std::size_t>(count));
    }
  }

 private:
  std::string path_;
  detail::Descriptor file_;
  std::int64_t size_ = 0, position_ = 0;
};

/// The next content of the file `path`. It is written to a temporary file in the same directory, and
/// `commit` puts that in the place of `path` in one step, so that at any moment, a crash or a full disk
/// included, `path` is either the old file or the new one, whole. Without `commit` (an exception, say) the
/// temporary file is removed and `path` stays as it was. Symbolic links are followed, and the permissions
/// of a file that exists are kept.
///
/// Every member throws a `DataError` with the system's reason if it fails.
class ReplacementFile {
 public:
  explicit ReplacementFile(std::string path)
      : path_(std::move(path)), target_(resolve(path_)), file_(create_temporary()) {}

  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;

  ~ReplacementFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    if (!detail::write_all(file_.get(), bytes)) fail();
  }

  /// Makes what was written the content of `path`, on the disk as well. Nothing can be written afterwards.
  void commit() {
    if (::fsync(file_.get()) != 0 || !file_.close()) fail();
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail();
    temporary_.clear();
    sync_directory();
  }

 private:
  [[noreturn]] void fail() const { detail::throw_errno(path_, "cannot write (nothing was changed): "); }

  /// The file that `path` leads to through symbolic links. Only a regular file may be replaced: renaming
  /// over a device or a pipe would remove it.
  static std::string resolve(const std::string& path) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) return path;
    if (!S_ISREG(status.st_mode)) throw DataError(path, -1, "cannot write: not a regular file");
    char* const resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return path;
    const std::string target = resolved;
    std::free(resolved);
    return target;
  }

  /// Creates `temporary_` under a name that nothing else uses, with the permissions of the file to replace.
  detail::Descriptor create_temporary() {
    static std::atomic<unsigned> counter = 0;
    int fd = -1;
    do {
      temporary_ = target_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
      fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) fail();
    struct stat status = {};
    if (::stat(target_.c_str(), &status) == 0) ::fchmod(fd, status.st_mode & 0777);
    return detail::Descriptor(fd);
  }

  /// Makes the renaming last through a power failure. Some file systems refuse to, and then the renaming
  /// lasts as soon as they write it by themselves; the file is whole either way.
  void sync_directory() const {
    const auto slash = target_.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : target_.substr(0, slash + 1);
    const detail::Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.get() >= 0) ::fsync(opened.get());
  }

  std::string path_, target_, temporary_;
  detail::Descriptor file_;
};

}  // namespace taut::io
