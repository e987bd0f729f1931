// The conversion of stored elements to floats and doubles.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <taut/io/dtype.hpp>
#include <vector>

namespace {

using taut::io::DType;

constexpr float inf = std::numeric_limits<float>::infinity();

/// What is stored for `values`, converted to `To`.
template <class To, class From> std::vector<To> converted(std::vector<From> values) {
  std::vector<To> result(values.size());
  const auto bytes = taut::io::little_endian_bytes(std::span(values));
  taut::io::convert(taut::io::dtype_of<From>, bytes, std::span(result));
  return result;
}

TEST(DTypes, AreNamedAndSizedAsTheFormatSays) {
  for (const auto& row : taut::io::dtypes) EXPECT_EQ(&taut::io::info(row.dtype), &row);
  EXPECT_EQ(taut::io::dtype_of<double>, DType::f64);
  EXPECT_EQ(taut::io::dtype_of<float>, DType::f32);
  EXPECT_EQ(taut::io::dtype_of<std::int64_t>, DType::i64);
  EXPECT_EQ(taut::io::dtype_of<std::int8_t>, DType::i8);
  EXPECT_EQ(taut::io::dtype_of<std::uint16_t>, DType::u16);
  EXPECT_EQ(taut::io::dtype_of<bool>, DType::boolean);
}

TEST(DTypes, EveryHalfIsConvertedExactly) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = taut::io::f16_to_float(static_cast<std::uint16_t>(bits));
    const int sign = bits >> 15, exponent = bits >> 10 & 31, fraction = bits & 1023;
    ASSERT_EQ(std::signbit(value), sign == 1) << bits;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), fraction != 0) << bits;
      ASSERT_EQ(std::isinf(value), fraction == 0) << bits;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(std::abs(value), magnitude) << bits;
    }
  }
}

TEST(DTypes, DoublesAreRoundedToTheNearestFloatTiesToEven) {
  const auto floats = converted<float>(std::vector<double>{1 + 0x1p-24, 1 + 0x3p-24, 1 + 0x1p-24 + 0x1p-50,
                                                           1e300, -1e300, 0x1p-149, std::nan("")});
  EXPECT_EQ(floats[0], 1.0f);
  EXPECT_EQ(floats[1], 1 + 0x1p-22f);
  EXPECT_EQ(floats[2], 1 + 0x1p-23f);
  EXPECT_EQ(floats[3], inf);
  EXPECT_EQ(floats[4], -inf);
  EXPECT_EQ(floats[5], 0x1p-149f);
  EXPECT_TRUE(std::isnan(floats[6]));
}

TEST(DTypes, IntegersAreRoundedToTheNearestFloatTiesToEven) {
  std::vector<std::int64_t> values = {(1 << 24) + 1, (1 << 24) + 3, -7,
                                      std::numeric_limits<std::int64_t>::min()};
  EXPECT_EQ(converted<float>(values), (std::vector{0x1p24f, 0x1p24f + 4, -7.0f, -0x1p63f}));
  EXPECT_EQ(converted<double>(values)[0], 16777217.0);
}

TEST(DTypes, BytesAreLittleEndianOnAnyHost) {
  std::vector<std::uint32_t> values = {0x01020304, 0xA0B0C0D0};
  const auto swapped = taut::io::little_endian_bytes<std::uint32_t, std::endian::big>(std::span(values));
  EXPECT_EQ(swapped.size(), 8u);
  EXPECT_EQ(values, (std::vector<std::uint32_t>{0x04030201, 0xD0C0B0A0}));
  const std::byte bytes[] = {std::byte{9}, std::byte{1}, std::byte{2}, std::byte{0}, std::byte{0x80}};
  EXPECT_EQ(taut::io::detail::load_unsigned(bytes + 1, 4), 0x80000201u);
  EXPECT_EQ(taut::io::detail::load_signed(bytes + 1, 4), static_cast<std::int32_t>(0x80000201u));
}

}  // namespace
