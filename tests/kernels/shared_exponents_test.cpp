#include "kernels/generic/shared_exponents.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "formats/mxfp4.h"
#include "formats/tile_views.h"
#include "support/machine_paths.h"
#include "support/packed.h"

namespace verbatim {
namespace {

using generic::SharedExponents;

std::vector<uint8_t> exponents_of(std::initializer_list<int> tiles) {
  std::vector<uint8_t> all;
  for (const int exponent : tiles) all.insert(all.end(), 16, static_cast<uint8_t>(exponent));
  return all;
}

TEST(SharedExponents, TilesThatAreNearShareTheLargestOne) {
  const SharedExponents level(exponents_of({120, 117, 119, 120}).data(), 4);
  EXPECT_FALSE(level.more);
  EXPECT_EQ(level.step[5], 117);
  EXPECT_EQ(level.shifts[0][5], 3);
  EXPECT_EQ(level.shifts[1][5], 0);
  EXPECT_EQ(level.shifts[2][5], 2);
  EXPECT_EQ(level.shifts[3][5], 3);
}

TEST(SharedExponents, TilesThatAreFarBelowHaveALevelOfTheirOwn) {
  SharedExponents level(exponents_of({120, 100, 119, 98}).data(), 4);
  ASSERT_TRUE(level.more);
  EXPECT_EQ(level.shifts[0][0], 3);
  EXPECT_EQ(level.shifts[1][0], 255);
  EXPECT_EQ(level.shifts[2][0], 2);
  EXPECT_EQ(level.shifts[3][0], 255);
  level.advance();
  EXPECT_FALSE(level.more);
  EXPECT_EQ(level.step[0], 97);
  EXPECT_EQ(level.shifts[0][0], 255);
  EXPECT_EQ(level.shifts[1][0], 3);
  EXPECT_EQ(level.shifts[2][0], 255);
  EXPECT_EQ(level.shifts[3][0], 1);
}

TEST(SharedExponents, GroupsOfZerosNeedNoLevel) {
  EXPECT_FALSE(SharedExponents(exponents_of({120, 3, 3, 120}).data(), 4).more);
  const SharedExponents zeros(exponents_of({3, 3}).data(), 2);
  EXPECT_FALSE(zeros.more);
  EXPECT_EQ(zeros.step[0], 0);
}

TEST(SharedExponents, TilesThatAreNotThereDoNotCount) {
  const std::vector<uint8_t> exponents = exponents_of({80, 81, 140, 140});
  const SharedExponents level(exponents.data(), 2);
  EXPECT_FALSE(level.more);
  EXPECT_EQ(level.step[0], 78);
}

// Every column has its own exponents, and each group is in one level with its own weight.
TEST(SharedExponents, EveryGroupIsInOneLevelWithItsOwnScale) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::array<uint8_t, 64> exponents{};
    for (uint8_t& e : exponents) {
      e = random() % 8 == 0 ? 3 : static_cast<uint8_t>(64 + random() % (round % 2 == 0 ? 84 : 6));
    }
    const auto count = static_cast<int64_t>(1 + random() % 4);
    std::array<int, 64> levels{};
    SharedExponents level(exponents.data(), count);
    for (int rounds = 1;; ++rounds) {
      for (size_t i = 0; i < static_cast<size_t>(count) * 16; ++i) {
        const int shift = level.shifts[i / 16][i % 16];
        if (shift >= 32) continue;
        ++levels[i];
        ASSERT_LE(shift, SharedExponents::kStep);
        if (exponents[i] != 3) {
          ASSERT_EQ(level.step[i % 16] + shift, exponents[i]);
        }
      }
      if (!level.more) break;
      ASSERT_LT(rounds, SharedExponents::kTiles);
      level.advance();
    }
    for (size_t i = 0; i < static_cast<size_t>(count) * 16; ++i) {
      if (exponents[i] != 3) {
        ASSERT_EQ(levels[i], 1) << "round " << round << ", place " << i;
      }
    }
  }
}

class SharedExponentProducts : public testing::TestWithParam<test::MachinePath> {};

INSTANTIATE_TEST_SUITE_P(, SharedExponentProducts, testing::ValuesIn(test::machine_paths()),
                         test::path_name<testing::TestParamInfo<test::MachinePath>>);

// Products of whole numbers with weights whose exponents are far apart: nothing of the small ones is lost
// that a float can hold beside the large ones.
TEST_P(SharedExponentProducts, KeepWhatIsFarBelow) {
  constexpr int64_t kK = 288;  // two groups and a quarter
  constexpr int64_t kColumns = 48;
  constexpr int64_t kRows = 21;
  std::vector<float> weights(static_cast<size_t>(kColumns * kK));
  for (size_t i = 0; i < weights.size(); ++i) {
    const int power = -static_cast<int>(i / 32 % 5) * 4;
    weights[i] = std::ldexp(static_cast<float>(i * 7 % 13) - 6.0f, power);
  }
  const PackedMatrix matrix = test::pack_store(kColumns, kK, weights, Format::kMxfp4);
  std::vector<int8_t> codes(static_cast<size_t>(kRows * kK) + 256);
  std::vector<float> scales(static_cast<size_t>(kRows * kK / 32), 0.5f);
  std::vector<int32_t> sums(scales.size());
  for (size_t i = 0; i < static_cast<size_t>(kRows * kK); ++i) {
    codes[i] = static_cast<int8_t>(i * 11 % 255 - 127);
    sums[i / 32] += codes[i];
  }
  const IntegerView view = integer_view(matrix, 0, matrix.panels());
  for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{5}, kRows}) {
    std::vector<float> c(static_cast<size_t>(rows * kColumns));
    GetParam().table->integer_product[view.weights]({codes.data(), scales.data(), sums.data(), rows, kK, kK},
                                                    view.panels, c.data(), kColumns);
    for (int64_t n = 0; n < kColumns; ++n) {
      const std::vector<float> column = test::unpacked_column(matrix, Reading::kMxfp4W4A8, n);
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        double magnitude = 0.0;
        for (int64_t k = 0; k < kK; ++k) {
          const int64_t place = r * kK + k / 4 * 4 + kQuadOrder[k % 4];
          const double term = double{column[static_cast<size_t>(k)]} * codes[static_cast<size_t>(place)];
          sum += term;
          magnitude += std::fabs(term);
        }
        ASSERT_NEAR(c[static_cast<size_t>(r * kColumns + n)], sum, magnitude * 0x1p-22)
            << "row " << r << " of " << rows << ", column " << n;
      }
    }
  }
}

/// A product with weights and activations of any bytes, but for exponents, which `exponent` makes: on this
/// path and on the scalar one. `k`: three groups and as many tiles of another as 32s are left.
template <typename Exponent>
void expect_scalar_bits(const KernelTable& kernel, int64_t k, Exponent&& exponent) {
  constexpr int64_t kColumns = 80;
  constexpr int64_t kRows = 19;
  std::mt19937 random(2);
  PackedMatrix matrix = test::pack_store(
      kColumns, k, std::vector<float>(static_cast<size_t>(kColumns * k), 1.0f), Format::kMxfp4);
  for (size_t i = 0; i < matrix.plane(0).size(); ++i) {
    matrix.plane(0).as<uint8_t>()[i] = static_cast<uint8_t>(random());
  }
  for (size_t i = 0; i < matrix.plane(1).size(); ++i) matrix.plane(1).as<uint8_t>()[i] = exponent(i, random);
  std::vector<int8_t> codes(static_cast<size_t>(kRows * k + kInnerStep));
  std::vector<float> scales(static_cast<size_t>(kRows * k / 32), 0x1p-20f);
  std::vector<int32_t> sums(scales.size());
  for (size_t i = 0; i < static_cast<size_t>(kRows * k); ++i) {
    codes[i] = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
    sums[i / 32] += codes[i];
  }
  const IntegerView view = integer_view(matrix, 0, matrix.panels());
  const auto multiply = [&](const KernelTable& table) {
    std::vector<float> c(static_cast<size_t>(kRows * kColumns));
    table.integer_product[view.weights]({codes.data(), scales.data(), sums.data(), kRows, k, k}, view.panels,
                                        c.data(), kColumns);
    return c;
  };
  const std::vector<float> expected = multiply(*test::machine_paths().front().table);
  const std::vector<float> actual = multiply(kernel);
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0) << "k " << k;
}

constexpr std::initializer_list<int64_t> kDepths = {384, 416, 448, 480};

// Files can hold scales that packing never makes: any bytes have to mean the same everywhere.
TEST_P(SharedExponentProducts, TakeAnyBytesAsTheScalarPathDoes) {
  for (const int64_t k : kDepths) {
    expect_scalar_bits(*GetParam().table, k,
                       [](size_t, std::mt19937& random) { return static_cast<uint8_t>(random()); });
  }
}

// Near each other they are all in one level, wherever they lie, to the smallest and the largest.
TEST_P(SharedExponentProducts, TakeExponentsNearEachOtherAsTheScalarPathDoes) {
  for (const int64_t k : kDepths) {
    for (const int base : {0, 1, 2, 3, 4, 60, 120, 251}) {
      expect_scalar_bits(*GetParam().table, k, [base](size_t, std::mt19937& random) {
        return static_cast<uint8_t>(base + static_cast<int>(random() % 4));
      });
    }
  }
}

// Few that are far off: most groups have one level, some two.
TEST_P(SharedExponentProducts, TakeFewFarOffAsTheScalarPathDoes) {
  for (const int64_t k : kDepths) {
    expect_scalar_bits(*GetParam().table, k, [](size_t i, std::mt19937& random) {
      return static_cast<uint8_t>(i % 97 == 0 ? random() : 118 + random() % 3);
    });
  }
}

}  // namespace
}  // namespace verbatim
