#include "formats/squeeze_variant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "formats/pack_linear.h"
#include "formats/round_to_nearest.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace squeeze_variant_test {
namespace {

constexpr int64_t kColumns = 21;
constexpr int64_t kInputs = 300;
constexpr SparseFractions kShares{.sensitive = 0.002, .outliers = 0.01};
constexpr SparseFractions kNone{.sensitive = 0.0, .outliers = 0.0};

/// Reads the rows of a matrix of numbers, which must live as long.
MatrixRows rows_of(const std::vector<float>& values) {
  return [&values](int64_t column, std::span<float> row) {
    std::copy_n(values.begin() + column * kInputs, row.size(), row.begin());
  };
}

std::vector<float> row_of(const MatrixRows& rows, int64_t column) {
  std::vector<float> row(kInputs);
  rows(column, row);
  return row;
}

class SqueezeVariantRows : public testing::Test {
 protected:
  SqueezeVariantRows() {
    weights_ = test::random_floats(kColumns * kInputs, 1);
    for (float& w : weights_) w = to_float(to_bfloat16(w));
    for (const float g : test::random_floats(kColumns * kInputs, 2)) sensitivities_.push_back(g * g);
  }

  MatrixRows squeezed(const SqueezeVariant& variant, bool with_sensitivities = true) {
    return squeezed_rows(kColumns, kInputs, rows_of(weights_),
                         with_sensitivities ? rows_of(sensitivities_) : MatrixRows(), variant, team_);
  }
  std::vector<float> weights(int64_t column) const {
    return {weights_.begin() + column * kInputs, weights_.begin() + (column + 1) * kInputs};
  }

  std::vector<float> weights_;
  std::vector<float> sensitivities_;
  ThreadTeam team_{2};
};

TEST_F(SqueezeVariantRows, AreThoseOfTheFormatThatThereIs) {
  for (const bool sensitive : {true, false}) {
    for (const auto& [format, reading, bits] :
         {std::tuple(Format::kSqueeze3, Reading::kSqueeze3, 3), {Format::kSqueeze4, Reading::kSqueeze4, 4}}) {
      PackLinearOptions options{.formats = {format}, .sparse = kShares};
      if (sensitive) options.sensitivities = rows_of(sensitivities_);
      const PackResult packed = pack_linear(kColumns, kInputs, rows_of(weights_), options, team_);
      const MatrixRows rows = squeezed({.bits = bits, .sparse = kShares}, sensitive);
      for (int64_t column = 0; column < kColumns; ++column) {
        std::vector<float> expected = test::unpacked_column(packed.weight.stores.front(), reading, column);
        expected.resize(kInputs);
        ASSERT_EQ(row_of(rows, column), expected);
      }
    }
  }
}

TEST_F(SqueezeVariantRows, OfTwoBitsHaveFourValuesAndWeightsThatAreKeptApart) {
  const MatrixRows dense = squeezed({.bits = 2, .sparse = kNone});
  const MatrixRows rows = squeezed({.bits = 2, .sparse = kShares});
  int64_t kept = 0;
  for (int64_t column = 0; column < kColumns; ++column) {
    const std::vector<float> row = row_of(dense, column);
    EXPECT_EQ(std::set<float>(row.begin(), row.end()).size(), 4u);
    const std::vector<float> own = weights(column);
    const std::vector<float> apart = row_of(rows, column);
    for (size_t i = 0; i < own.size(); ++i) kept += std::fabs(own[i] - apart[i]) < 0.004f * std::fabs(own[i]);
  }
  EXPECT_GE(kept, static_cast<int64_t>(0.011 * kColumns * kInputs));
}

TEST_F(SqueezeVariantRows, InGroupsHaveATableForEach) {
  constexpr size_t kGroup = 128;
  const MatrixRows grouped = squeezed({.bits = 3, .group = kGroup, .sparse = kNone});
  const MatrixRows whole = squeezed({.bits = 3, .sparse = kNone});
  double error_grouped = 0.0;
  double error_whole = 0.0;
  for (int64_t column = 0; column < kColumns; ++column) {
    const std::vector<float> row = row_of(grouped, column);
    for (size_t begin = 0; begin < row.size(); begin += kGroup) {
      const size_t end = std::min(row.size(), begin + kGroup);
      EXPECT_EQ(std::set<float>(row.data() + begin, row.data() + end).size(), 8u);
    }
    const std::vector<float> own = weights(column);
    const std::vector<float> other = row_of(whole, column);
    for (size_t i = 0; i < own.size(); ++i) {
      const double counts = sensitivities_[static_cast<size_t>(column * kInputs) + i];
      error_grouped += counts * std::pow(own[i] - row[i], 2);
      error_whole += counts * std::pow(own[i] - other[i], 2);
    }
  }
  EXPECT_LT(error_grouped, 0.95 * error_whole);
}

TEST_F(SqueezeVariantRows, ThatAreUniformAreRoundedOverTheRangeOfWhatIsNotKeptApart) {
  const MatrixRows dense = squeezed({.bits = 3, .uniform = true, .sparse = kNone});
  const MatrixRows rows = squeezed({.bits = 3, .uniform = true, .sparse = kShares});
  for (int64_t column = 0; column < kColumns; ++column) {
    std::vector<float> own = weights(column);
    std::vector<float> rounded(own.size());
    round_to_nearest(own, 3, rounded);
    EXPECT_EQ(row_of(dense, column), rounded);
    const std::vector<float> apart = row_of(rows, column);
    std::vector<float> left = own;
    for (size_t i = 0; i < own.size(); ++i) {
      if (apart[i] == own[i]) left[i] = 0.0f;  // kept apart, or on the grid by chance, which changes no range
    }
    const auto step = [](std::vector<float> values) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      return (*high - *low) / 7.0f;
    };
    for (size_t i = 0; i < own.size(); ++i) EXPECT_LE(std::fabs(apart[i] - own[i]), step(left));
  }
}

}  // namespace
}  // namespace squeeze_variant_test
}  // namespace verbatim
