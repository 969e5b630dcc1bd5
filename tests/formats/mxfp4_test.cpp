#include "formats/mxfp4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace {

std::array<float, 32> group_of(std::initializer_list<float> values) {
  std::array<float, 32> group{};
  std::copy(values.begin(), values.end(), group.begin());
  return group;
}

TEST(Mxfp4, ScaleIsTheLargestPowerOfTwoOverFour) {
  EXPECT_EQ(quantize_mxfp4(group_of({6.0f})).exponent, 127);  // floor(log2 6) - 2 = 0
  EXPECT_EQ(quantize_mxfp4(group_of({4.0f})).exponent, 127);
  EXPECT_EQ(quantize_mxfp4(group_of({-7.9f})).exponent, 127);
  EXPECT_EQ(quantize_mxfp4(group_of({8.0f})).exponent, 128);
  EXPECT_EQ(quantize_mxfp4(group_of({0.01f})).exponent, 127 - 7 - 2);  // 2^-7 ≤ 0.01
}

TEST(Mxfp4, ValuesOfTheFormatAreKeptExactly) {
  const Mxfp4Group group = quantize_mxfp4(group_of(
      {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f}));
  const std::vector<int> expected = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(group.codes[i], expected[i]) << i;
}

TEST(Mxfp4, TiesGoToTheEvenCode) {
  // Between 0 and 0.5, 0.5 and 1, ..., 4 and 6; the 4 fixes the scale at one.
  const Mxfp4Group group = quantize_mxfp4(group_of({4.0f, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f}));
  const std::vector<int> expected = {6, 0, 2, 2, 4, 4, 6, 6};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(group.codes[i], expected[i]) << i;
}

TEST(Mxfp4, WhatExceedsTheLargestValueIsClamped) {
  const Mxfp4Group group = quantize_mxfp4(group_of({7.9f, -7.0f}));
  EXPECT_EQ(group.codes[0], 7);
  EXPECT_EQ(group.codes[1], 15);
}

TEST(Mxfp4, ZerosNanAndInfinityGiveFiniteWeights) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Mxfp4Group& group :
       {quantize_mxfp4(group_of({})), quantize_mxfp4(group_of({NAN, 1.0f})),
        quantize_mxfp4(group_of({infinity, 1.0f})), quantize_mxfp4(group_of({1e-45f, -1e-44f})),
        quantize_mxfp4(group_of({3.4e38f}))}) {
    EXPECT_GE(group.exponent, 3);
    EXPECT_LE(group.exponent, 147);
    for (const uint8_t code : group.codes) {
      EXPECT_LT(code, 16);
      EXPECT_TRUE(std::isfinite(mxfp4_value(code, group.exponent)));
    }
  }
}

TEST(Mxfp4, RoundsEveryWeightToANearestValue) {
  const std::vector<float> weights = test::random_floats(32 * 500, 1, 0.05f);
  for (size_t g = 0; g < 500; ++g) {
    const std::span<const float, 32> group(weights.data() + g * 32, 32);
    const Mxfp4Group quantized = quantize_mxfp4(group);
    for (size_t i = 0; i < 32; ++i) {
      const float error = std::fabs(mxfp4_value(quantized.codes[i], quantized.exponent) - group[i]);
      for (uint8_t code = 0; code < 16; ++code) {
        ASSERT_LE(error, std::fabs(mxfp4_value(code, quantized.exponent) - group[i]));
      }
    }
  }
}

TEST(Mxfp4, PackingAndUnpackingIsTheQuantization) {
  const int64_t columns = 37;
  const int64_t k = 100;  // not whole panels, not whole groups
  const std::vector<float> weights = test::random_floats(columns * k, 2);
  const PackedMatrix matrix = test::pack_store(columns, k, weights, Format::kMxfp4);
  EXPECT_EQ(matrix.columns, 48);
  EXPECT_EQ(matrix.k, 128);
  EXPECT_EQ(matrix.bytes(), 48 * 128 / 2 + 48 * 4);  // 4.25 bits per weight
  for (int64_t n = 0; n < columns; ++n) {
    const std::vector<float> unpacked = test::unpacked_column(matrix, Reading::kMxfp4W4A16, n);
    for (size_t g = 0; g < 4; ++g) {
      std::array<float, 32> group{};
      for (size_t i = 0; i < 32 && g * 32 + i < static_cast<size_t>(k); ++i) {
        group[i] = weights[static_cast<size_t>(n * k) + g * 32 + i];
      }
      const Mxfp4Group quantized = quantize_mxfp4(group);
      for (size_t i = 0; i < 32; ++i) {
        ASSERT_EQ(unpacked[g * 32 + i], mxfp4_value(quantized.codes[i], quantized.exponent));
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
