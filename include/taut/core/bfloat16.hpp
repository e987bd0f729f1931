#pragma once
// `bfloat16`: a float's upper half as a storage type, for hosts and devices alike. It has the range of float
// and 8 significant bits. Nothing is computed in it: it converts to float, and floats are rounded to it.

#include <bit>
#include <cstdint>

namespace taut {

/// A number of 1 sign bit, 8 exponent bits and 7 fraction bits.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;

  /// The nearest bfloat16, ties to even; beyond the largest one, infinity. A NaN stays a NaN, with its sign
  /// and the upper part of its payload, and becomes quiet.
  constexpr explicit bfloat16(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const bool nan = (wide & 0x7FFFFFFFu) > 0x7F800000u;
    const std::uint32_t even = wide >> 16 & 1;
    bits = static_cast<std::uint16_t>(nan ? wide >> 16 | 0x40u : (wide + 0x7FFFu + even) >> 16);
  }

  /// The number with the given bits.
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 result;
    result.bits = bits;
    return result;
  }

  /// The same value.
  constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace taut
