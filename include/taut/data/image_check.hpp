#pragma once
// Finds damage in PNG and JPEG files before they are decoded. stb_image trusts them more than is good: it
// ignores checksums, shows a truncated JPEG image with a grey rest, and writes beyond its tables for some
// damaged ones.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "../core/crc.hpp"
#include "../core/error.hpp"

namespace taut::data::detail {

using ImageBytes = std::span<const std::uint8_t>;

inline constexpr std::array<std::uint8_t, 8> png_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
inline constexpr std::array<std::uint8_t, 2> jpeg_signature{0xff, 0xd8};

inline bool starts_with(ImageBytes bytes, ImageBytes signature) {
  return bytes.size() >= signature.size() && std::equal(signature.begin(), signature.end(), bytes.begin());
}

// The big-endian number of `count` bytes at `position`, which must be there.
inline std::uint32_t big_endian(ImageBytes bytes, std::size_t position, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[position + i];
  return value;
}

// The checksum of PNG's chunks (PNG specification, third edition, annex D).
inline std::uint32_t crc32(ImageBytes bytes) { return taut::detail::crc<0xedb88320>(bytes); }

struct ImageSize {
  std::int64_t height = 0, width = 0;
};

// The size that the first chunk, the header, declares.
inline ImageSize png_size(ImageBytes bytes, const std::string& name) {
  constexpr std::array<std::uint8_t, 8> header{0, 0, 0, 13, 'I', 'H', 'D', 'R'};
  if (!starts_with(bytes.subspan(png_signature.size()), header))
    throw DataError(name, 8, "png: expected the header to come first");
  return {big_endian(bytes, 20, 4), big_endian(bytes, 16, 4)};
}

// Returns the declared size. Throws `DataError` unless every chunk is there with the right checksum, up to
// the one that ends the image.
inline ImageSize check_png(ImageBytes bytes, const std::string& name) {
  constexpr std::size_t around = 12;  // a chunk's length and type before its data, and its checksum behind
  std::size_t position = png_signature.size();
  for (;;) {
    const auto rest = bytes.size() - position;
    if (rest < around || big_endian(bytes, position, 4) > rest - around) {
      throw DataError(name, static_cast<std::int64_t>(bytes.size()),
                      "png: the file is truncated: it ends here");
    }
    const std::size_t length = big_endian(bytes, position, 4);
    const auto type_and_data = bytes.subspan(position + 4, 4 + length);
    if (crc32(type_and_data) != big_endian(bytes, position + 8 + length, 4)) {
      throw DataError(name, static_cast<std::int64_t>(position),
                      "png: the chunk that starts here is damaged: its checksum is wrong");
    }
    constexpr std::array<std::uint8_t, 4> end{'I', 'E', 'N', 'D'};
    if (starts_with(type_and_data, end)) return png_size(bytes, name);
    position += around + length;
  }
}

// Walks through the markers of a JPEG file (ITU-T T.81, annex B).
class JpegCheck {
 public:
  JpegCheck(ImageBytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  // Returns the declared size. Throws `DataError` unless the file goes on to the marker that ends the image,
  // and has a frame, Huffman tables of a possible size and a reasonable number of scans.
  ImageSize run() {
    position_ = jpeg_signature.size();
    ImageSize size;
    for (int scans = 0;;) {
      const auto marker = next_marker();
      if (marker == end_of_image) break;
      if (marker <= restart_7 && marker >= restart_0) continue;
      const auto segment = next_segment();
      if (marker == huffman_tables) check_tables(segment);
      if (is_frame(marker) && size.height == 0) size = frame_size(segment);
      if (marker == start_of_scan && ++scans > max_scans)
        fail("jpeg: more than " + std::to_string(max_scans) + " scans, which only an attack would have");
    }
    if (size.height == 0) fail("jpeg: no frame, and so no size, before the end of the image");
    return size;
  }

 private:
  static constexpr std::uint8_t huffman_tables = 0xc4, restart_0 = 0xd0, restart_7 = 0xd7,
                                end_of_image = 0xd9, start_of_scan = 0xda;
  static constexpr int max_scans = 500;

  // Markers 0xc0 to 0xcf are the kinds of frames, but for three that are something else.
  static bool is_frame(std::uint8_t marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != huffman_tables && marker != 0xc8 && marker != 0xcc;
  }

  ImageSize frame_size(ImageBytes frame) const {
    if (frame.size() < 5) fail("jpeg: the frame before this byte is too short for its size");
    return {big_endian(frame, 1, 2), big_endian(frame, 3, 2)};
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(name_, static_cast<std::int64_t>(position_), message);
  }

  void require_bytes(std::size_t count) {
    if (bytes_.size() - position_ >= count) return;
    position_ = bytes_.size();
    fail("jpeg: the file is truncated: it ends here, before the end of the image");
  }

  // Skips to the next 0xff that is followed by another byte than 0, which stands for a 0xff in image data,
  // and returns that byte.
  std::uint8_t next_marker() {
    for (;;) {
      const auto rest = bytes_.subspan(position_);
      position_ += static_cast<std::size_t>(std::find(rest.begin(), rest.end(), 0xff) - rest.begin());
      while (position_ < bytes_.size() && bytes_[position_] == 0xff) ++position_;
      require_bytes(1);
      if (const auto marker = bytes_[position_++]; marker != 0) return marker;
    }
  }

  // Skips the segment behind a marker and returns its data: what follows the length.
  ImageBytes next_segment() {
    require_bytes(2);
    const std::size_t length = big_endian(bytes_, position_, 2);
    if (length < 2) fail("jpeg: a segment is shorter than its own length");
    require_bytes(length);
    const auto data = bytes_.subspan(position_ + 2, length - 2);
    position_ += length;
    return data;
  }

  // A table is a byte, 16 counts of codes by their length, and a byte for each code.
  void check_tables(ImageBytes tables) const {
    constexpr std::size_t counts = 16;
    while (!tables.empty()) {
      std::size_t codes = 0;
      for (const auto count : tables.subspan(1).first(std::min(counts, tables.size() - 1))) codes += count;
      if (codes > 256 || tables.size() < 1 + counts + codes)
        fail("jpeg: a Huffman table before this byte has more than 256 codes, or than its segment holds");
      tables = tables.subspan(1 + counts + codes);
    }
  }

  ImageBytes bytes_;
  const std::string& name_;
  std::size_t position_ = 0;
};

}  // namespace taut::data::detail
