#pragma once
// The IDX format, in which MNIST and its relatives are published: a dense array of up to 255 dimensions.
//
//   byte 0, 1   zero
//   byte 2      the element type; 0x08 is an unsigned byte, the only one read here
//   byte 3      the rank r
//   4 r bytes   the extents, each an unsigned 32-bit big-endian number, outermost first
//   the rest    the elements, in row-major order
//
// Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", the section on the
// file formats.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "byte_source.hpp"

namespace taut::data {

/// The contents of an IDX file of unsigned bytes: `shape.size()` values in row-major order.
struct Idx {
  Shape shape;
  std::vector<std::uint8_t> values;
};

namespace detail {

inline std::string hex(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

// Fills `out`, which starts at byte `offset` of the header.
inline void read_idx_header_bytes(ByteSource& source, std::span<std::uint8_t> out, std::int64_t offset) {
  const auto count = source.read(out);
  if (count == out.size()) return;
  source.fail(offset + static_cast<std::int64_t>(count), "idx: the header is truncated: the file ends here");
}

inline void check_idx_type(ByteSource& source, std::uint8_t type) {
  constexpr std::uint8_t unsigned_byte = 0x08;
  if (type == unsigned_byte) return;
  const char* meaning = type == 0x09   ? "signed bytes"
                        : type == 0x0b ? "16-bit integers"
                        : type == 0x0c ? "32-bit integers"
                        : type == 0x0d ? "32-bit floats"
                        : type == 0x0e ? "64-bit floats"
                                       : "no type that the format knows";
  source.fail(2, "idx: expected elements that are unsigned bytes (type 0x08), got type " + hex(type) + ", " +
                     meaning);
}

// Reads the header up to the first element. The number of elements that it declares fits an int64.
inline Shape read_idx_header(ByteSource& source) {
  std::array<std::uint8_t, 4> magic{};
  read_idx_header_bytes(source, magic, 0);
  if (magic[0] != 0 || magic[1] != 0) {
    source.fail(0, "idx: this is not an IDX file: expected it to start with two zero bytes, got " +
                       hex(magic[0]) + " " + hex(magic[1]));
  }
  check_idx_type(source, magic[2]);
  const int rank = magic[3];
  if (rank < 1 || rank > max_rank) {
    source.fail(
        3, "idx: expected 1 to " + std::to_string(max_rank) + " dimensions, got " + std::to_string(rank));
  }

  Shape shape;
  std::int64_t size = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t offset = 4 + 4 * axis;
    std::array<std::uint8_t, 4> bytes{};
    read_idx_header_bytes(source, bytes, offset);
    std::int64_t extent = 0;
    for (const auto byte : bytes) extent = extent << 8 | byte;
    if (extent != 0 && size > std::numeric_limits<std::int64_t>::max() / extent) {
      source.fail(offset, "idx: the extents up to this one, " + std::to_string(extent) +
                              ", multiply to more elements than a 64-bit number can count");
    }
    size *= extent;
    shape.push_back(extent);
  }
  return shape;
}

// Reads `shape.size()` elements and makes sure that nothing follows. The memory grows with what was really
// read, so that a header which promises too much costs nothing.
inline std::vector<std::uint8_t> read_idx_values(ByteSource& source, const Shape& shape) {
  const auto header_size = static_cast<std::int64_t>(4 + 4 * shape.rank());
  const auto size = static_cast<std::size_t>(shape.size());
  constexpr std::size_t chunk = 1 << 20;
  std::vector<std::uint8_t> values;
  while (values.size() < size) {
    const auto before = values.size();
    const auto wanted = std::min(chunk, size - before);
    if (values.capacity() < before + wanted) values.reserve(std::min(size, 2 * before + wanted));
    values.resize(before + wanted);
    const auto count = source.read(std::span(values).subspan(before));
    if (count < wanted) {
      source.fail(header_size + static_cast<std::int64_t>(before + count),
                  "idx: the file is truncated: the header declares " + to_string(shape) + " = " +
                      std::to_string(size) + " elements, but only " + std::to_string(before + count) +
                      " are there");
    }
  }
  std::array<std::uint8_t, 1> extra{};
  if (source.read(extra) != 0) {
    source.fail(header_size + shape.size(), "idx: more bytes follow the " + std::to_string(size) +
                                                " elements of " + to_string(shape) +
                                                " that the header declares");
  }
  return values;
}

inline Idx parse_idx(ByteSource& raw) {
  return with_decompressed(raw, [](ByteSource& source) {
    const Shape shape = read_idx_header(source);
    return Idx{shape, read_idx_values(source, shape)};
  });
}

}  // namespace detail

/// Reads an IDX file of unsigned bytes, plain or compressed with gzip, which its contents tell and not its
/// name. Throws `DataError` with the path and the byte offset if the file is missing, truncated or damaged,
/// has bytes behind its end, or holds elements of another type or of rank above `max_rank`.
inline Idx read_idx(const std::string& path) {
  FileSource file(path);
  return detail::parse_idx(file);
}

/// The same for the contents of such a file in memory; errors call it `name`.
inline Idx parse_idx(std::span<const std::uint8_t> bytes, const std::string& name) {
  MemorySource memory(bytes, name);
  return detail::parse_idx(memory);
}

}  // namespace taut::data
