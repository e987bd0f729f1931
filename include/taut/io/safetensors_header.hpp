#pragma once
// What the header of a safetensors file says, and the rules that it must keep.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "dtype.hpp"

namespace taut::io {

/// What a file says of itself: free text under free names, without meaning to the format.
using Metadata = std::map<std::string, std::string>;

namespace detail {

/// Headers are at most this long, in bytes, as in the format's reference implementation.
inline constexpr std::int64_t max_header_size = 100'000'000;

/// The key under which a header has its `Metadata`; no tensor can have this name.
inline constexpr std::string_view metadata_key = "__metadata__";

/// A tensor as the header describes it: its data are the bytes [begin, end) behind the header.
struct HeaderEntry {
  std::string name;
  DType dtype = {};
  Shape shape;
  std::uint64_t begin = 0, end = 0;
  std::int64_t position = 0;  ///< where in the file it is described, for messages
};

struct Header {
  std::vector<HeaderEntry> entries;
  Metadata metadata;
};

/// A name from a file, made safe to show: quoted, cut if long, and only printable ASCII, other bytes as \xNN.
inline std::string printable(std::string_view name) {
  constexpr std::size_t shown = 100;
  std::string text = "'";
  for (const char c : name.substr(0, shown)) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += std::string("\\x") + "0123456789abcdef"[byte / 16] + "0123456789abcdef"[byte % 16];
    }
  }
  return text + (name.size() > shown ? "…'" : "'");
}

/// The size in bytes of a tensor, or -1 if an extent is negative or the size overflows. Extents of zero do
/// not excuse an overflow of the others, so that strides can be computed safely too.
inline std::int64_t byte_size(const Shape& shape, DType dtype) {
  std::int64_t size = info(dtype).size;
  bool empty = false;
  for (const auto extent : shape) {
    if (extent < 0) return -1;
    empty = empty || extent == 0;
    if (extent > 1 && size > std::numeric_limits<std::int64_t>::max() / extent) return -1;
    size *= extent > 1 ? extent : 1;
  }
  return empty ? 0 : size;
}

/// Checks each tensor for itself: its extents, and its bytes among the `data_size` that the file has.
inline void check_entry(const HeaderEntry& entry, std::uint64_t data_size, const std::string& path) {
  const auto fail = [&](const std::string& message) {
    throw DataError(path, entry.position, "safetensors: tensor " + printable(entry.name) + " " + message);
  };
  const std::string range = "bytes " + std::to_string(entry.begin) + " to " + std::to_string(entry.end);
  const std::int64_t size = byte_size(entry.shape, entry.dtype);
  if (size < 0) fail("has a shape that is too large: " + to_string(entry.shape));
  if (entry.begin > entry.end) fail("has reversed data_offsets: " + range);
  if (entry.end > data_size) {
    fail("has " + range + " of the data, but the file has only " + std::to_string(data_size) +
         ": it is truncated or its data_offsets are wrong");
  }
  if (entry.end - entry.begin != static_cast<std::uint64_t>(size)) {
    fail("of type " + std::string(info(entry.dtype).name) + " and shape " + to_string(entry.shape) +
         " needs " + std::to_string(size) + " bytes, but has " + range);
  }
}

/// The numbers below `count`, sorted; what `less` calls equal stays in order.
inline std::vector<std::size_t> sorted_indices(std::size_t count,
                                               const std::function<bool(std::size_t, std::size_t)>& less) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < count; ++i) indices.push_back(i);
  std::sort(indices.begin(), indices.end(),
            [&](std::size_t a, std::size_t b) { return less(a, b) || (a < b && !less(b, a)); });
  return indices;
}

/// Sorts the tensors by their place in the data, and checks that they fill it without overlap or gap.
inline void check_layout(std::vector<HeaderEntry>& entries, std::uint64_t data_size,
                         const std::string& path) {
  for (const auto& entry : entries) check_entry(entry, data_size, path);
  const auto order = sorted_indices(entries.size(), [&](std::size_t a, std::size_t b) {
    return std::pair(entries[a].begin, entries[a].end) < std::pair(entries[b].begin, entries[b].end);
  });
  std::vector<HeaderEntry> sorted;
  for (const auto index : order) sorted.push_back(std::move(entries[index]));
  entries = std::move(sorted);
  std::uint64_t expected = 0;
  for (const auto& entry : entries) {
    if (entry.begin != expected) {
      const char* fault = entry.begin < expected ? " overlaps the tensor before it" : " follows a gap";
      throw DataError(path, entry.position,
                      "safetensors: tensor " + printable(entry.name) + fault +
                          " in the data: it begins at byte " + std::to_string(entry.begin) + " instead of " +
                          std::to_string(expected));
    }
    expected = entry.end;
  }
  if (expected != data_size) {
    throw DataError(path, -1,
                    "safetensors: the tensors fill " + std::to_string(expected) +
                        " bytes, but the file has " + std::to_string(data_size) + " bytes of data");
  }
}

}  // namespace detail
}  // namespace taut::io
