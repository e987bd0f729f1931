// Conversions between float and bfloat16: against the definition, over all of bfloat16 and around its ties.

#include <gtest/gtest.h>
#include <taut/core/bfloat16.hpp>

#include <bit>
#include <cmath>
#include <limits>

namespace taut {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint16_t rounded(float value) { return bfloat16(value).bits; }

TEST(Bfloat16, EveryNumberIsItselfThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto number = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
    const float value = number;
    if (std::isnan(value))
      EXPECT_EQ(rounded(value), bits | 0x40);  // quiet
    else
      EXPECT_EQ(rounded(value), bits);
  }
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const std::uint32_t below = bits << 16;
    const auto of = [&](std::uint32_t rest) { return rounded(std::bit_cast<float>(below + rest)); };
    EXPECT_EQ(of(0x7FFF), bits);
    EXPECT_EQ(of(0x8000), bits + bits % 2);
    EXPECT_EQ(of(0x8001), bits + 1);
    EXPECT_EQ(of(0xFFFF), bits + 1);
    EXPECT_EQ(rounded(-std::bit_cast<float>(below + 0x8000)), 0x8000 + bits + bits % 2);
  }
}

TEST(Bfloat16, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(float(bfloat16(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(float(bfloat16(-std::numeric_limits<float>::max())), -infinity);
  EXPECT_EQ(float(bfloat16(infinity)), infinity);
}

TEST(Bfloat16, NanStaysNanWhateverItsPayload) {
  for (const std::uint32_t payload : {0x1u, 0x7FFFu, 0x8000u, 0xFFFFu, 0x400000u, 0x7FFFFFu}) {
    EXPECT_TRUE(std::isnan(float(bfloat16(std::bit_cast<float>(0x7F800000u | payload)))));
    EXPECT_TRUE(std::isnan(float(bfloat16(std::bit_cast<float>(0xFF800000u | payload)))));
  }
}

static_assert(float(bfloat16(1.0f)) == 1 && bfloat16(-2.5f).bits == 0xC020 && bfloat16().bits == 0);

}  // namespace
}  // namespace taut
