#pragma once
// The element types that tensors have on disk, and their conversion to `float` and `double`.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "../core/bfloat16.hpp"

namespace taut::io {

/// The type of a stored tensor's elements.
enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

/// What the safetensors format says of an element type: its name in the file, and its size in bytes.
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::int64_t size;
};

/// All element types, in the order of the enumeration.
inline constexpr DTypeInfo dtypes[] = {
    {DType::f64, "F64", 8},     {DType::f32, "F32", 4}, {DType::f16, "F16", 2}, {DType::bf16, "BF16", 2},
    {DType::i64, "I64", 8},     {DType::i32, "I32", 4}, {DType::i16, "I16", 2}, {DType::i8, "I8", 1},
    {DType::u64, "U64", 8},     {DType::u32, "U32", 4}, {DType::u16, "U16", 2}, {DType::u8, "U8", 1},
    {DType::boolean, "BOOL", 1}};

/// The name ("F32") and the size in bytes of an element type.
constexpr const DTypeInfo& info(DType dtype) { return dtypes[static_cast<int>(dtype)]; }

/// The element type that stores a C++ arithmetic type without loss: `dtype_of<float>` is `DType::f32`.
template <class T>
requires std::is_arithmetic_v<T> &&(sizeof(T) <= 8) inline constexpr DType dtype_of = [] {
  constexpr int log_size = std::bit_width(sizeof(T)) - 1;
  constexpr DType signed_types[] = {DType::i8, DType::i16, DType::i32, DType::i64};
  constexpr DType unsigned_types[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  if (std::same_as<T, bool>) return DType::boolean;
  if (std::floating_point<T>) return sizeof(T) == 8 ? DType::f64 : DType::f32;
  return std::is_signed_v<T> ? signed_types[log_size] : unsigned_types[log_size];
}();

/// The value of an IEEE 754 binary16 number ("half"), exactly; a NaN keeps its sign and payload.
constexpr float f16_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1Fu, fraction = half & 0x3FFu;
  if (exponent == 0) {  // zero and subnormal numbers: multiples of 2^-24, all normal as a float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t wide_exponent = exponent == 0x1F ? 0xFFu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

namespace detail {

/// Reads an unsigned number of `size` little-endian bytes, on any host and at any alignment.
inline std::uint64_t load_unsigned(const std::byte* bytes, std::int64_t size) {
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i < size; ++i) bits |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return bits;
}

/// The same for a signed number in two's complement.
inline std::int64_t load_signed(const std::byte* bytes, std::int64_t size) {
  const auto unused_bits = 64 - 8 * size;
  return static_cast<std::int64_t>(load_unsigned(bytes, size) << unused_bits) >> unused_bits;
}

/// Converts what `load` reads at every `size` bytes.
template <class T>
void convert_each(std::span<const std::byte> bytes, std::span<T> out, std::int64_t size, auto load) {
  const std::byte* position = bytes.data();
  for (T& value : out) {
    value = static_cast<T>(load(position));
    position += size;
  }
}

/// The same for numbers of the host's own kind, `Bits` wide, which are copied if nothing is to be changed.
template <class Stored, class Bits, class T>
void convert_floats(std::span<const std::byte> bytes, std::span<T> out) {
  if constexpr (std::same_as<Stored, T> && std::endian::native == std::endian::little) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size_bytes());
  } else {
    convert_each(bytes, out, sizeof(Stored), [](const std::byte* from) {
      return std::bit_cast<Stored>(static_cast<Bits>(load_unsigned(from, sizeof(Bits))));
    });
  }
}

}  // namespace detail

/// Converts `out.size()` stored elements (little-endian, any alignment) to `float` or `double`. The nearest
/// representable value is taken, ties to even; NaN and infinities stay what they are, values beyond the
/// range of `float` become infinite, and booleans become 0 and 1. `bytes` must hold that many elements.
template <std::floating_point T>
void convert(DType dtype, std::span<const std::byte> bytes, std::span<T> out) {
  using namespace detail;
  const std::int64_t size = info(dtype).size;
  const auto half = [](const std::byte* from) { return static_cast<std::uint16_t>(load_unsigned(from, 2)); };
  switch (dtype) {
    case DType::f64:
      return convert_floats<double, std::uint64_t>(bytes, out);
    case DType::f32:
      return convert_floats<float, std::uint32_t>(bytes, out);
    case DType::f16:
      return convert_each(bytes, out, 2, [=](const std::byte* from) { return f16_to_float(half(from)); });
    case DType::bf16:
      return convert_each(bytes, out, 2,
                          [=](const std::byte* from) { return float(bfloat16::from_bits(half(from))); });
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
      return convert_each(bytes, out, size, [=](const std::byte* from) { return load_signed(from, size); });
    case DType::u64:
    case DType::u32:
    case DType::u16:
    case DType::u8:
      return convert_each(bytes, out, size, [=](const std::byte* from) { return load_unsigned(from, size); });
    case DType::boolean:
      return convert_each(bytes, out, 1, [](const std::byte* from) { return *from != std::byte{0}; });
  }
}

/// The bytes of `values` as they are stored, little-endian. Nothing is copied: where the host's order is
/// another, `values` are reordered in place, and are then only good for writing.
template <class T, std::endian host = std::endian::native>
requires std::is_arithmetic_v<T> std::span<const std::byte> little_endian_bytes(std::span<T> values) {
  const auto bytes = std::as_writable_bytes(values);
  if constexpr (host != std::endian::little && sizeof(T) > 1) {
    for (std::size_t first = 0; first < bytes.size(); first += sizeof(T)) {
      for (std::size_t i = 0, j = sizeof(T) - 1; i < j; ++i, --j) {
        const std::byte lower = bytes[first + i];
        bytes[first + i] = bytes[first + j];
        bytes[first + j] = lower;
      }
    }
  }
  return bytes;
}

}  // namespace taut::io
