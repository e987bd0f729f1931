#pragma once
// A training run as an event file, which TensorBoard shows.
//
// The file is a sequence of records, each framed with its length and checksums (TFRecord), and each record is
// one `Event` in the wire format of protocol buffers. Sources: TensorFlow's description of the TFRecord
// format and its messages event.proto and summary.proto; Protocol Buffers, "Encoding"; for CRC-32C, RFC 3720,
// section 12.1 and appendix B.4.

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "../core/crc.hpp"
#include "../io/file.hpp"
#include "history.hpp"

namespace taut::train {

namespace detail {

/// Castagnoli's check.
constexpr std::uint32_t crc32c(std::string_view bytes) { return taut::detail::crc<0x82f63b78>(bytes); }

/// The checksum as records have it: changed, so that the checksum of a record which contains checksums is not
/// a trivial one.
constexpr std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
}

inline void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
}

/// Length (8 bytes), its checksum (4), the data, their checksum (4).
inline std::string tf_record(std::string_view data) {
  std::string record;
  append_little_endian(record, data.size(), 8);
  append_little_endian(record, masked_crc32c(record), 4);
  record += data;
  append_little_endian(record, masked_crc32c(data), 4);
  return record;
}

/// A message of protocol buffers, field by field.
class ProtoMessage {
 public:
  ProtoMessage& integer(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }

  ProtoMessage& float64(int field, double value) {
    key(field, 1);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }

  /// A string, or a message within this one.
  ProtoMessage& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }

  ProtoMessage& float32(int field, float value) {
    key(field, 5);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }

  const std::string& str() const { return bytes_; }

 private:
  void key(int field, int wire_type) { varint(static_cast<std::uint64_t>(field << 3 | wire_type)); }

  // Seven bits a byte, the lowest first; the highest bit says that more follow.
  void varint(std::uint64_t value) {
    for (; value > 127; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// A `Summary.Value` with tag = 1 and simple_value = 2.
inline std::string summary_value(std::string_view tag, double value) {
  return ProtoMessage().bytes(1, tag).float32(2, static_cast<float>(value)).str();
}

/// The seconds since 1970.
inline double wall_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

/// Makes a directory and those that it is in, unless they are there. What fails shows when a file is created.
inline void make_directories(const std::string& path) {
  for (auto end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    ::mkdir(path.substr(0, end).c_str(), 0777);
  ::mkdir(path.c_str(), 0777);
}

struct TensorBoardTag {
  std::string_view name;
  double EpochResult::*value;
};

inline constexpr std::array tensor_board_tags{
    TensorBoardTag{"loss/train", &EpochResult::train_loss},
    TensorBoardTag{"loss/test", &EpochResult::test_loss},
    TensorBoardTag{"accuracy/train", &EpochResult::train_accuracy},
    TensorBoardTag{"accuracy/test", &EpochResult::test_accuracy},
    TensorBoardTag{"learning_rate", &EpochResult::learning_rate},
    TensorBoardTag{"samples_per_second", &EpochResult::samples_per_second},
};

}  // namespace detail

/// Writes an event file for TensorBoard, as a callback: an epoch's `loss/train`, `loss/test`,
/// `accuracy/train`, `accuracy/test`, `learning_rate` and `samples_per_second`, in single precision as
/// TensorBoard has them; the step is the epoch. What was not measured (NaN) is left out.
///
///     train::TensorBoardLog log{"runs/lenet"};   // then: tensorboard --logdir runs
///     train::fit(model, sgd, train_loader, test_loader, {.epochs = 10}, log);
///
/// Each epoch is handed to the operating system whole before `on_epoch` returns, so TensorBoard shows a run
/// as it goes, and one that is killed keeps its epochs. Each object writes a file of its own; TensorBoard
/// shows those of one directory as one run, so a run is continued by logging to the same directory.
class TensorBoardLog {
 public:
  /// Creates `directory` if need be and in it the file `events.out.tfevents.<seconds since 1970>.<host>`, or
  /// one with a further number if that is there. Throws `DataError` if it cannot be created or written.
  explicit TensorBoardLog(const std::string& directory) : file_(create(directory)) {
    append(event().bytes(3, "brain.Event:2"));  // file_version
  }

  /// Adds an epoch. Throws `DataError` if it cannot be written; the file is then as it was before.
  void on_epoch(const EpochResult& result) {
    detail::ProtoMessage values;
    for (const auto& tag : detail::tensor_board_tags)
      if (!std::isnan(result.*tag.value)) values.bytes(1, detail::summary_value(tag.name, result.*tag.value));
    append(event().integer(2, result.epoch).bytes(5, values.str()));
  }

  /// Adds a value of the program's own at a step. Throws as `on_epoch` does.
  void add_scalar(std::string_view tag, double value, std::int64_t step) {
    const auto summary = detail::ProtoMessage().bytes(1, detail::summary_value(tag, value));
    append(event().integer(2, step).bytes(5, summary.str()));
  }

  /// The event file.
  const std::string& path() const { return path_; }

 private:
  // An `Event` with wall_time = 1; further fields are step = 2, file_version = 3 and summary = 5.
  static detail::ProtoMessage event() { return detail::ProtoMessage().float64(1, detail::wall_time()); }

  // Sets `path_` to a name that nothing else uses.
  io::detail::Descriptor create(const std::string& directory) {
    detail::make_directories(directory);
    const std::string name = directory + "/events.out.tfevents." +
                             std::to_string(static_cast<std::int64_t>(detail::wall_time())) + "." +
                             detail::host_name();
    int fd = -1;
    path_ = name;
    for (int copy = 1; (fd = open_new()) < 0 && errno == EEXIST; ++copy)
      path_ = name + "." + std::to_string(copy);
    if (fd < 0) io::detail::throw_errno(path_, "tensorboard log: cannot create the file: ");
    return io::detail::Descriptor(fd);
  }

  int open_new() const {
    return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  }

  void append(const detail::ProtoMessage& message) {
    const std::string record = detail::tf_record(message.str());
    if (!io::detail::write_all(file_.get(), std::as_bytes(std::span(record)))) undo_and_throw();
    size_ += static_cast<std::int64_t>(record.size());
  }

  // Part of a record would make all that follow unreadable.
  [[noreturn]] void undo_and_throw() const {
    const int code = errno;
    const bool undone = ::ftruncate(file_.get(), size_) == 0;
    errno = code;
    io::detail::throw_errno(path_, undone
                                       ? "tensorboard log: cannot write (the file is as it was): "
                                       : "tensorboard log: cannot write (the file is damaged at its end): ");
  }

  std::string path_;
  io::detail::Descriptor file_;  // after `path_`, which its creation sets
  std::int64_t size_ = 0;
};

}  // namespace taut::train
