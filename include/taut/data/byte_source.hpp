#pragma once
// Where the readers of data files get their bytes: a file, memory, or either of them through gzip. Whatever
// it is, a reader asks for a few bytes at a time and so never holds more than the data really has.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "../core/error.hpp"

#ifndef TAUT_HAS_ZLIB
#define TAUT_HAS_ZLIB 0  // 1 needs linking with zlib; CMake defines it when zlib is there
#endif

#if TAUT_HAS_ZLIB
#include <zlib.h>
#endif

namespace taut::data {

/// A stream of bytes with a name for error messages.
class ByteSource {
 public:
  /// `note` is appended to every error message.
  explicit ByteSource(std::string name, std::string note = "")
      : name_(std::move(name)), note_(std::move(note)) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills `out` from the front and returns how many bytes came: fewer than asked for only at the end.
  /// Throws `DataError` if the bytes cannot be read or decompressed.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;

  /// Goes back to the first byte.
  virtual void rewind() = 0;

  /// Throws a `DataError` that points at the byte `offset` of this stream.
  [[noreturn]] void fail(std::int64_t offset, const std::string& message) const {
    throw DataError(name_, offset, message + note_);
  }

  const std::string& name() const { return name_; }

 private:
  std::string name_, note_;
};

/// The bytes of a file.
class FileSource : public ByteSource {
 public:
  /// Opens the file. Throws `DataError` if that fails.
  explicit FileSource(const std::string& path) : ByteSource(path), file_(std::fopen(path.c_str(), "rb")) {
    if (!file_) fail(-1, std::string("cannot open the file: ") + std::strerror(errno));
  }

  std::size_t read(std::span<std::uint8_t> out) override {
    const auto count = std::fread(out.data(), 1, out.size(), file_.get());
    position_ += static_cast<std::int64_t>(count);
    if (count < out.size() && std::ferror(file_.get())) {
      fail(position_, std::string("cannot read the file: ") + std::strerror(errno));
    }
    return count;
  }

  void rewind() override {
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail(-1, "cannot seek in it: a regular file is needed");
    position_ = 0;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::unique_ptr<std::FILE, Close> file_;
  std::int64_t position_ = 0;
};

/// Bytes that are already in memory, which must outlive the source.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::span<const std::uint8_t> bytes, std::string name)
      : ByteSource(std::move(name)), bytes_(bytes) {}

  std::size_t read(std::span<std::uint8_t> out) override {
    const auto count = std::min(out.size(), bytes_.size() - position_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(position_), count, out.begin());
    position_ += count;
    return count;
  }

  void rewind() override { position_ = 0; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
};

/// Whether the stream starts with gzip's two magic bytes (RFC 1952, section 2.3.1). Leaves it rewound.
inline bool is_gzip(ByteSource& source) {
  std::array<std::uint8_t, 2> magic{};
  source.read(magic);
  source.rewind();
  return magic[0] == 0x1f && magic[1] == 0x8b;
}

#if TAUT_HAS_ZLIB

/// The decompressed bytes of a gzip stream, whose checksum is verified when its end is reached. Several
/// members one after another read as one stream, as with `gunzip`.
class GzipSource : public ByteSource {
 public:
  /// `compressed` must outlive this source.
  explicit GzipSource(ByteSource& compressed)
      : ByteSource(compressed.name(), " (the byte is counted in the decompressed data)"),
        compressed_(compressed) {
    constexpr int gzip_with_largest_window = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_with_largest_window) != Z_OK) throw Error("gzip: zlib cannot start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(std::span<std::uint8_t> out) override {
    std::size_t count = 0;
    while (count < out.size()) {
      const auto step = inflate_some(out.subspan(count));
      if (step == 0 && at_end()) break;
      count += step;
    }
    return count;
  }

  void rewind() override {
    compressed_.rewind();
    inflateReset(&stream_);
    stream_.avail_in = 0;
    consumed_ = 0;
    between_members_ = false;
  }

 private:
  bool at_end() const { return between_members_ && stream_.avail_in == 0; }

  void refill() {
    stream_.next_in = buffer_.data();
    stream_.avail_in = static_cast<uInt>(compressed_.read(buffer_));
    consumed_ += stream_.avail_in;
  }

  // One call of `inflate`, which may deliver nothing, such as while it reads a header.
  std::size_t inflate_some(std::span<std::uint8_t> out) {
    if (stream_.avail_in == 0) refill();
    if (at_end()) return 0;
    if (between_members_) inflateReset(&stream_);
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), 1u << 30));
    stream_.next_out = out.data();
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    between_members_ = status == Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END) fail_at_input(status);
    return room - stream_.avail_out;
  }

  [[noreturn]] void fail_at_input(int status) const {
    const auto offset = consumed_ - stream_.avail_in;
    // With input left zlib always gets on, so that no progress means that the input has ended.
    if (status == Z_BUF_ERROR) compressed_.fail(offset, "gzip: the file is truncated: the stream has no end");
    const std::string reason = stream_.msg ? stream_.msg : "zlib's code " + std::to_string(status);
    compressed_.fail(offset, "gzip: the compressed stream is corrupt: " + reason);
  }

  ByteSource& compressed_;
  z_stream stream_{};
  std::array<std::uint8_t, 1 << 16> buffer_;
  std::int64_t consumed_ = 0;  // bytes taken from `compressed_`
  bool between_members_ = false;
};

#endif

/// Calls `use(source)` with the contents of `raw`, decompressed if they are gzip, which the first bytes tell
/// and not the name. Throws `DataError` for gzip in a build without zlib.
template <class Use> auto with_decompressed(ByteSource& raw, Use use) {
  if (!is_gzip(raw)) return use(raw);
#if TAUT_HAS_ZLIB
  GzipSource decompressed(raw);
  return use(static_cast<ByteSource&>(decompressed));
#else
  raw.fail(0,
           "the file is compressed with gzip, and this program was built without zlib. Either unpack the "
           "file with gunzip, or install zlib (Debian: zlib1g-dev) and configure again; without CMake, "
           "compile with -DTAUT_HAS_ZLIB=1 and link with -lz");
#endif
}

}  // namespace taut::data
