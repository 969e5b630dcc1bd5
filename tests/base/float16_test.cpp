#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace verbatim {
namespace float16_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float float_of(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TEST(BFloat16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const BFloat16 value{static_cast<uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide)) {
      ASSERT_EQ(to_bfloat16(wide).bits, bits | 0x40u);  // made quiet
    } else {
      ASSERT_EQ(to_bfloat16(wide), value);
    }
  }
}

TEST(BFloat16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_bfloat16(float_of(0x3f807fff)).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(float_of(0x3f808000)).bits, 0x3f80);  // a tie: down to the even one
  EXPECT_EQ(to_bfloat16(float_of(0x3f808001)).bits, 0x3f81);
  EXPECT_EQ(to_bfloat16(float_of(0x3f818000)).bits, 0x3f82);  // a tie: up to the even one
  EXPECT_EQ(to_bfloat16(float_of(0xbf818000)).bits, 0xbf82);
  EXPECT_EQ(to_bfloat16(float_of(0x00008000)).bits, 0x0000);  // subnormals too
  EXPECT_EQ(to_bfloat16(float_of(0x00018000)).bits, 0x0002);
}

TEST(BFloat16, KeepsTheSpecialValues) {
  EXPECT_EQ(to_bfloat16(kInfinity).bits, 0x7f80);
  EXPECT_EQ(to_bfloat16(-kInfinity).bits, 0xff80);
  EXPECT_EQ(to_bfloat16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);  // overflow
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(kNaN))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(float_of(0x7f800001)))));  // the payload lies in the lost bits
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(float_of(0xffffffff)))));
}

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const Float16 value{static_cast<uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide)) {
      ASSERT_EQ(to_float16(wide).bits, bits | 0x200u);  // made quiet
    } else {
      ASSERT_EQ(to_float16(wide), value);
    }
  }
}

TEST(Float16, HasTheValuesOfTheStandard) {
  EXPECT_EQ(to_float(Float16{0x3c00}), 1.0f);
  EXPECT_EQ(to_float(Float16{0xc000}), -2.0f);
  EXPECT_EQ(to_float(Float16{0x7bff}), 65504.0f);
  EXPECT_EQ(to_float(Float16{0x0400}), 0x1p-14f);
  EXPECT_EQ(to_float(Float16{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(Float16{0x83ff}), -0x1.ff8p-15f);
  EXPECT_EQ(to_float(Float16{0x7c00}), kInfinity);
}

TEST(Float16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_float16(1.0f + 0x1p-11f).bits, 0x3c00);  // ties
  EXPECT_EQ(to_float16(1.0f + 0x1p-11f + 0x1p-23f).bits, 0x3c01);
  EXPECT_EQ(to_float16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);
  EXPECT_EQ(to_float16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7c00);  // a tie between the largest number and what follows it
  EXPECT_EQ(to_float16(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(to_float16(0x1.000002p-25f).bits, 0x0001);
  EXPECT_EQ(to_float16(3 * 0x1p-25f).bits, 0x0002);
  EXPECT_EQ(to_float16(0x1.ffcp-15f).bits, 0x0400);  // rounds up to the smallest normal number
}

TEST(Float16, KeepsTheSpecialValues) {
  EXPECT_EQ(to_float16(kInfinity).bits, 0x7c00);
  EXPECT_EQ(to_float16(-kInfinity).bits, 0xfc00);
  EXPECT_EQ(to_float16(1e30f).bits, 0x7c00);
  EXPECT_EQ(to_float16(-65536.0f).bits, 0xfc00);
  EXPECT_EQ(to_float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_float16(-1e-30f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(to_float(to_float16(kNaN))));
  EXPECT_TRUE(std::isnan(to_float(to_float16(float_of(0xff800001)))));
}

TEST(Float16, ConvertsInConstantExpressions) {
  static_assert(to_float16(1.5f).bits == 0x3e00);
  static_assert(to_float(Float16{0x3e00}) == 1.5f);
  static_assert(to_bfloat16(1.5f).bits == 0x3fc0);
}

#ifdef __FLT16_MANT_DIG__
// Not under Clang, whose own conversion needs a run-time routine that GCC's library may lack.
#ifndef __clang__
TEST(Float16, AgreesWithTheCompiler) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000000; ++i) {
    // Every other one within the range of the format, where a uniform pattern of bits seldom falls.
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x807fffffu) | ((100u + bits % 45u) << 23);
    const float value = float_of(bits);
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(to_float16(value).bits, expected) << std::hexfloat << value;
    ASSERT_EQ(to_float(Float16{expected}), static_cast<float>(std::bit_cast<_Float16>(expected)));
  }
}
#endif
#endif

}  // namespace
}  // namespace float16_test
}  // namespace verbatim
