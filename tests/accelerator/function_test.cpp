#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "accelerator/function/float_units.h"
#include "accelerator/function/stored_weight.h"
#include "accelerator/function/tile.h"
#include "base/float16.h"

namespace verbatim::accelerator {
namespace {

float as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
/// The bits of a host's result, with the one NaN of the PEs.
uint32_t bits_of(float value) {
  return std::isnan(value) ? kNan : std::bit_cast<uint32_t>(value);
}
float half(uint16_t bits) {
  return to_float(Float16{bits});
}

TEST(Decoders, GiveTheExponentsOfFigureThree) {
  // By code: draft exponents 9, 2, 11, 6, 8, 10, 12, 14.
  const int draft[8] = {9, 2, 11, 6, 8, 10, 12, 14};
  for (int code = 0; code < 8; ++code) EXPECT_EQ(draft_exponent(static_cast<uint8_t>(code)), draft[code]);
  // By flag and code: the upper bits of the exponent.
  const int upper[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {4, 0, 5, 2, 4, 0, 5, 2}};
  for (const bool flag : {false, true}) {
    for (int code = 0; code < 8; ++code) {
      for (const bool lowest : {false, true}) {
        EXPECT_EQ(full_exponent(static_cast<uint8_t>(code), flag, lowest), upper[flag][code] * 2 + lowest);
      }
    }
  }
}

TEST(StoredWeights, GiveAllFp16BelowTwoBack) {
  // The draft exponents of figure 3, by exponent.
  const int draft[16] = {2, 2, 2, 2, 6, 6, 6, 6, 8, 9, 10, 11, 12, 12, 14, 14};
  std::set<int> seen;
  for (int bits = 0; bits < 65536; ++bits) {
    const auto fp16 = static_cast<uint16_t>(bits);
    const auto stored = encode(fp16);
    ASSERT_EQ(stored.has_value(), (bits >> 10 & 31) < 16) << bits;
    if (!stored) continue;
    ASSERT_EQ(as_fp16(full_weight(*stored)), fp16);
    ASSERT_EQ(draft_weight(*stored), bits >> 15 << 4 | draft[bits >> 10 & 31]);
    seen.insert(stored->q << 12 | stored->r);
  }
  EXPECT_EQ(seen.size(), 32768u);
}

TEST(Multiplier, MultipliesAllSignificandsInHalves) {
  for (uint32_t a = 0; a < 2048; ++a) {
    for (uint32_t w = 0; w < 2048; ++w) ASSERT_EQ(multiply_significands(a, w), a * w);
  }
}

TEST(Products, OfQuantizeModeAreExactForAllActivationsAndWeights) {
  for (int activation = 0; activation < 65536; ++activation) {
    for (int weight = 0; weight < 32; ++weight) {
      const float value = std::ldexp(weight >= 16 ? -1.0f : 1.0f, (weight & 15) - 15);
      ASSERT_EQ(draft_product(static_cast<uint16_t>(activation), static_cast<uint8_t>(weight)),
                bits_of(half(static_cast<uint16_t>(activation)) * value))
          << activation << " " << weight;
    }
  }
}

TEST(Products, OfFullModeAreThoseOfTheHost) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2'000'000; ++i) {
    const uint64_t bits = random();
    const auto activation = static_cast<uint16_t>(bits);
    const auto weight = static_cast<uint16_t>(bits >> 16 & 0x7fff);
    ASSERT_EQ(full_product(activation, weight), bits_of(half(activation) * half(as_fp16(weight))))
        << activation << " " << weight;
  }
}

/// Numbers of all kinds: near each other, far apart, subnormal, infinite, NaN.
uint32_t any_number(std::mt19937_64& random) {
  const auto bits = static_cast<uint32_t>(random());
  switch (random() % 6) {
    case 0:
      return bits;
    case 1:
      return bits & 0x807fffff;  // subnormal
    case 2:
      return (bits & 0x80000007) | 0x3f800000;  // about one
    case 3:
      return (bits & 0x8000ffff) | 0x7f7f0000;  // about the largest
    case 4:
      return (bits & 0x80000000) | (random() % 2 == 0 ? 0x7f800000 : 0);
    default:
      return (bits & 0x81ffffff) | 0x3e000000;
  }
}

TEST(Accumulator, AddsAsTheHostDoes) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 3'000'000; ++i) {
    const uint32_t a = any_number(random);
    const uint32_t b = i % 16 == 0 ? a ^ 0x80000000 : any_number(random);
    ASSERT_EQ(add_fp32(a, b), bits_of(as_float(a) + as_float(b))) << std::hex << a << " " << b;
    ASSERT_EQ(multiply_fp32(a, b), bits_of(as_float(a) * as_float(b))) << std::hex << a << " " << b;
  }
}

/// A row of activations and weights, about as large as real ones.
struct Row {
  std::vector<uint16_t> activations;
  std::vector<StoredWeight> weights;
};
Row random_row(std::mt19937_64& random, size_t inputs) {
  Row row;
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < inputs; ++i) {
    row.activations.push_back(to_float16(normal(random)).bits);
    row.weights.push_back(*encode(to_float16(0.05f * std::clamp(normal(random), -20.0f, 20.0f)).bits));
  }
  return row;
}

TEST(Tiles, AddAGroupInOneOrderWhereverItLies) {
  std::mt19937_64 random(8);
  for (const size_t count : {1u, 2u, 3u, 64u, 100u, 127u, 128u}) {
    for (int i = 0; i < 50; ++i) {
      std::vector<uint32_t> products;
      std::normal_distribution<float> normal;
      for (size_t k = 0; k < count; ++k) products.push_back(bits_of(normal(random)));
      ASSERT_EQ(sum_of_group(products), sum_of_group_in_one_pe(products));
    }
  }
}

TEST(Tiles, MultiplyInFullModeNearlyAsInDouble) {
  std::mt19937_64 random(9);
  for (const size_t inputs : {1u, 128u, 300u, 4096u}) {
    const Row row = random_row(random, inputs);
    double sum = 0;
    double size = 0;
    for (size_t i = 0; i < inputs; ++i) {
      const double product =
          static_cast<double>(half(row.activations[i])) * half(as_fp16(full_weight(row.weights[i])));
      sum += product;
      size += std::abs(product);
    }
    EXPECT_NEAR(as_float(full_dot(row.activations, row.weights)), sum, 1e-6 * size);
  }
}

TEST(Tiles, ScaleTheSumsOfGroupsInQuantizeMode) {
  std::mt19937_64 random(10);
  const size_t inputs = 300;
  std::array<Row, 3> rows;
  const std::vector<uint16_t> activations = random_row(random, inputs).activations;
  std::vector<uint32_t> scales = {bits_of(0.5f), bits_of(2.0f), bits_of(1.25f)};
  std::array<std::span<const StoredWeight>, 3> weights;
  for (size_t lane = 0; lane < 3; ++lane) {
    rows[lane] = random_row(random, inputs);
    weights[lane] = rows[lane].weights;
  }
  const auto sums = draft_dots(activations, weights, {scales, scales, scales});
  for (size_t lane = 0; lane < 3; ++lane) {
    double sum = 0;
    double size = 0;
    for (size_t i = 0; i < inputs; ++i) {
      const uint8_t weight = draft_weight(weights[lane][i]);
      const double value = std::ldexp(weight >= 16 ? -1.0 : 1.0, (weight & 15) - 15);
      const double product = value * half(activations[i]) * as_float(scales[i / 128]);
      sum += product;
      size += std::abs(product);
    }
    EXPECT_NEAR(as_float(sums[lane]), sum, 1e-6 * size);
  }
}

}  // namespace
}  // namespace verbatim::accelerator
