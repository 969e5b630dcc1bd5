#include "formats/squeeze.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formats/squeeze_quantizer.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace squeeze_test {
namespace {

constexpr int64_t kColumns = 37;
constexpr int64_t kInputs = 600;  // whole groups of neither format

std::vector<float> some_weights() {
  return test::random_floats(kColumns * kInputs, 1, 0.05f);
}
std::vector<float> some_sensitivities() {
  std::vector<float> sensitivities = test::random_floats(kColumns * kInputs, 2);
  for (float& s : sensitivities) s = s * s;
  return sensitivities;
}

uint32_t sparse_entries(const PackedMatrix& matrix) {
  return matrix.plane(2).as<uint32_t>()[matrix.columns];
}

class Squeeze : public testing::TestWithParam<Format> {
 protected:
  PackedMatrix pack(const PackLinearOptions& asked) {
    ThreadTeam team(2);
    PackLinearOptions options = asked;
    options.formats = {GetParam()};
    LinearWeight weight =
        std::move(pack_linear(kColumns, kInputs, test::rows_of(weights_, kInputs), options, team).weight);
    return std::move(weight.stores.front());
  }
  Reading reading() const { return readings(GetParam()).front(); }
  int levels() const { return GetParam() == Format::kSqueeze3 ? 8 : 16; }

  std::vector<float> weights_ = some_weights();
  std::vector<float> sensitivities_ = some_sensitivities();
};

INSTANTIATE_TEST_SUITE_P(, Squeeze, testing::Values(Format::kSqueeze3, Format::kSqueeze4),
                         [](const auto& info) { return std::string(format_name(info.param)); });

TEST_P(Squeeze, UnpacksToTableAndSparsePart) {
  ThreadTeam team(2);
  for (const bool sensitive : {false, true}) {
    PackLinearOptions options;
    if (sensitive) options.sensitivities = test::rows_of(sensitivities_, kInputs);
    const PackedMatrix matrix = pack(options);
    const SparseThresholds thresholds = sparse_thresholds(kColumns, kInputs, test::rows_of(weights_, kInputs),
                                                          options.sensitivities, options.sparse, team);
    const std::vector<float> alike(kInputs, 1.0f);
    int64_t kept = 0;
    for (int64_t n = 0; n < kColumns; ++n) {
      const auto row_of = [&](const std::vector<float>& rows) {
        return std::span(rows).subspan(static_cast<size_t>(n * kInputs), kInputs);
      };
      const std::span<const float> weights = row_of(weights_);
      const std::span<const float> sensitivities =
          sensitive ? row_of(sensitivities_) : std::span<const float>();
      const std::vector<uint8_t> sparse = choose_sparse(weights, sensitivities, thresholds);
      const SqueezedColumn squeezed =
          quantize_squeezed(weights, sensitive ? sensitivities : alike, sparse, levels());
      const std::vector<float> unpacked = test::unpacked_column(matrix, reading(), n);
      for (size_t k = 0; k < kInputs; ++k) {
        float expected = squeezed.value(squeezed.codes[k]);
        if (sparse[k] != 0) expected += to_float(to_bfloat16(sparse_residual(squeezed, weights[k])));
        ASSERT_EQ(unpacked[k], expected) << "column " << n << ", input " << k;
        kept += sparse[k];
      }
      for (size_t k = kInputs; k < unpacked.size(); ++k) {
        ASSERT_EQ(unpacked[k], squeezed.value(squeezed.zero_code));
      }
    }
    EXPECT_EQ(sparse_entries(matrix), kept);
    EXPECT_GT(kept, 0);
  }
}

TEST_P(Squeeze, KeepsAsManyWeightsApartAsAskedAndNoMore) {
  for (const bool sensitive : {false, true}) {
    for (const SparseFractions fractions : {SparseFractions{}, SparseFractions{0.0, 0.004},
                                            SparseFractions{0.01, 0.0}, SparseFractions{0.02, 0.03}}) {
      PackLinearOptions options;
      options.sparse = fractions;
      if (sensitive) options.sensitivities = test::rows_of(sensitivities_, kInputs);
      const double asked = (fractions.sensitive + fractions.outliers) * kColumns * kInputs;
      const double entries = sparse_entries(pack(options));
      EXPECT_LE(entries, asked);
      EXPECT_GT(entries, asked - 2.0);  // the weights all differ; the two parts are rounded down
    }
  }
  EXPECT_LE(sparse_entries(pack({})), 0.0045 * kColumns * kInputs);
}

TEST_P(Squeeze, WithoutThresholdsNothingIsSparse) {
  PackLinearOptions options;
  options.sparse = {0.0, 0.0};
  EXPECT_EQ(sparse_entries(pack(options)), 0u);
  // And what a matrix's statistics are before anybody looks at it.
  const FormatOperations& format = operations(GetParam());
  PackedMatrix matrix = format.allocate(16, kInputs, Element::kBf16, {});
  PanelSource source;
  source.column_count = 16;
  source.weights = std::span<const float>(weights_).first(16 * kInputs);
  std::vector<PanelTail> tails(1);
  format.pack_panel(matrix, source, {}, tails[0]);
  EXPECT_TRUE(tails[0].empty());
  format.finish(matrix, tails);
  EXPECT_EQ(sparse_entries(matrix), 0u);
  EXPECT_NO_THROW(format.validate(matrix));
  for (int64_t n = 0; n < 16; ++n) {
    std::vector<float> values = test::unpacked_column(matrix, reading(), n);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    EXPECT_LE(values.size(), static_cast<size_t>(levels()));
  }
}

TEST_P(Squeeze, WeightsThatAreKeptApartAreNearlyExact) {
  PackLinearOptions options;
  options.sparse = {0.0, 1.0};  // all but the smallest
  const PackedMatrix matrix = pack(options);
  for (int64_t n = 0; n < kColumns; ++n) {
    const std::vector<float> unpacked = test::unpacked_column(matrix, reading(), n);
    for (int64_t k = 0; k < kInputs; ++k) {
      const float w = weights_[static_cast<size_t>(n * kInputs + k)];
      ASSERT_NEAR(unpacked[static_cast<size_t>(k)], w, std::fabs(w) * 0x1p-7f + 1e-6f);
    }
  }
}

TEST_P(Squeeze, TakesTheBitsPerWeightThatItSays) {
  PackLinearOptions options;
  options.formats = {GetParam()};
  ThreadTeam team(2);
  const std::vector<float> weights = test::random_floats(64 * 1024, 3);
  const PackResult packed = pack_linear(64, 1024, test::rows_of(weights, 1024), options, team);
  const double bits = 8.0 * static_cast<double>(packed.weight.stores.front().bytes()) / (64 * 1024);
  // Codes, a table per column, 32 bits for 0.45 % of the weights, and where each column's begin.
  EXPECT_NEAR(bits, std::log2(levels()) + levels() * 16 / 1024.0 + 0.0045 * 32 + 32 / 1024.0, 0.01);
}

}  // namespace
}  // namespace squeeze_test
}  // namespace verbatim
