#pragma once
// IDX files made in memory and on disk, for the tests of what reads them.

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <taut/data/byte_source.hpp>

#include "../temporary_directory.hpp"

namespace taut::test {

using Bytes = std::vector<std::uint8_t>;

/// The header of an IDX file: two zero bytes, the type, the rank and the extents.
inline Bytes idx_header(std::initializer_list<std::uint32_t> extents, std::uint8_t type = 0x08) {
  Bytes bytes{0, 0, type, static_cast<std::uint8_t>(extents.size())};
  for (const auto extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  }
  return bytes;
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An IDX file whose elements count up from 0, modulo `modulus`.
inline Bytes counting_idx(std::initializer_list<std::uint32_t> extents, int modulus = 256) {
  std::size_t size = 1;
  for (const auto extent : extents) size *= extent;
  Bytes values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = static_cast<std::uint8_t>(i % static_cast<std::size_t>(modulus));
  return idx_header(extents) + values;
}

inline void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

#if TAUT_HAS_ZLIB
/// The bytes as one gzip member.
inline Bytes gzip(std::span<const std::uint8_t> bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 32);
  stream.next_in = const_cast<std::uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
#endif

}  // namespace taut::test
