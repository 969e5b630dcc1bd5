#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "Adder.h"
#include "AdderWithBug.h"
#include "Decoder.h"
#include "DraftDecoderWithBug.h"
#include "FullDecoderWithBug.h"
#include "Multiplier.h"
#include "MultiplierWithBugs.h"
#include "Scaler.h"
#include "ScalerWithBug.h"
#include "accelerator/function/float_units.h"
#include "rtl/comparisons.h"

namespace verbatim::accelerator {
namespace {

float as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
/// The bits of a host's result, with the one NaN of the PEs.
uint32_t bits_of(float value) {
  return std::isnan(value) ? kNan : std::bit_cast<uint32_t>(value);
}

TEST(DecodersInRtl, GiveWhatTheModelGivesForAllInputs) {
  EXPECT_EQ(test::decoder_differences<Decoder>(), 0);
  EXPECT_GT(test::decoder_differences<DraftDecoderWithBug>(), 0);
  EXPECT_GT(test::decoder_differences<FullDecoderWithBug>(), 0);
}

TEST(DecodersInRtl, GiveAllFp16WeightsBack) {
  EXPECT_EQ(test::stored_weight_differences<Decoder>(), 0);
  EXPECT_GT(test::stored_weight_differences<DraftDecoderWithBug>(), 0);
  EXPECT_GT(test::stored_weight_differences<FullDecoderWithBug>(), 0);
}

/// All products of significands, and all sums of exponents; how many differ from the host's.
template <typename Module>
int64_t multiplier_differences() {
  Module module;
  int64_t differences = 0;
  module.draft = 0;
  for (uint32_t a = 0; a < 2048; ++a) {
    module.activation = static_cast<SData>(a);
    for (uint32_t w = 0; w < 2048; ++w) {
      module.weight = static_cast<SData>(w);
      module.eval();
      differences += module.product != a * w ? 1 : 0;
    }
  }
  module.draft = 1;
  for (uint32_t exponents = 0; exponents < 1 << 13; ++exponents) {
    module.activation = static_cast<SData>(exponents * 37 & 2047);
    module.weight = static_cast<SData>(exponents * 91 & 2047);
    module.exponent = exponents & 31;
    module.second = exponents >> 5 & 15;
    module.third = exponents >> 9 & 15;
    module.eval();
    differences += module.second_sum != (exponents & 31) + (exponents >> 5 & 15) ? 1 : 0;
    differences += module.third_sum != (exponents & 31) + (exponents >> 9 & 15) ? 1 : 0;
  }
  return differences;
}

TEST(MultiplierInRtl, MultipliesAllSignificandsAndAddsAllExponents) {
  EXPECT_EQ(multiplier_differences<Multiplier>(), 0);
  EXPECT_GT(multiplier_differences<MultiplierWithBugs>(), 0);
}

TEST(AccumulatorInRtl, AddsAsTheHostDoes) {
  constexpr int64_t kPairs = 3'000'000;
  const auto host = [](uint32_t a, uint32_t b) { return bits_of(as_float(a) + as_float(b)); };
  EXPECT_EQ(test::float_differences<Adder>(kPairs, host, [](Adder& one) { return one.sum; }), 0);
  EXPECT_EQ(test::float_differences<Adder>(kPairs / 8, add_fp32, [](Adder& one) { return one.sum; }), 0);
  EXPECT_GT(test::float_differences<AdderWithBug>(kPairs / 8, host, [](auto& one) { return one.sum; }), 0);
}

TEST(ScalesInRtl, AreMultipliedAsTheHostDoes) {
  constexpr int64_t kPairs = 2'000'000;
  const auto host = [](uint32_t a, uint32_t b) { return bits_of(as_float(a) * as_float(b)); };
  EXPECT_EQ(test::float_differences<Scaler>(kPairs, host, [](Scaler& one) { return one.product; }), 0);
  EXPECT_GT(test::float_differences<ScalerWithBug>(kPairs / 8, host, [](auto& one) { return one.product; }),
            0);
}

}  // namespace
}  // namespace verbatim::accelerator
