#pragma once
// Cyclic redundancy checks of 32 bits, by a table of what the check makes of each byte (Sarwate, "Computation
// of Cyclic Redundancy Checks via Table Look-Up", 1988).

#include <array>
#include <cstdint>

namespace taut::detail {

template <std::uint32_t polynomial>
inline constexpr auto crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ polynomial : value >> 1;
    table[byte] = value;
  }
  return table;
}();

/// The check of some bytes; the polynomial is given with its bits reversed.
template <std::uint32_t polynomial, class Bytes> constexpr std::uint32_t crc(const Bytes& bytes) {
  std::uint32_t value = 0xffffffff;
  for (const auto byte : bytes)
    value = crc_table<polynomial>[(value ^ static_cast<unsigned char>(byte)) & 0xff] ^ value >> 8;
  return ~value;
}

}  // namespace taut::detail
