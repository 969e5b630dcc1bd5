#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/tile_codes.h"
#include "model/weights.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace integer_formats_test {
namespace {

constexpr int64_t kColumns = 37;
constexpr int64_t kInputs = 300;  // two whole groups of 128 and a part of one

/// How a weight's code becomes its value.
struct Grid {
  float scale;
  float zero;
  float lowest;   // steps from zero
  float highest;  // likewise
};

Grid grid_of(const PackedMatrix& matrix, int64_t column, int64_t k) {
  if (matrix.format == Format::kInt8) {
    return {to_float(matrix.plane(1).as<Float16>()[tile_scale_index(matrix, column, k)]), 0.0f, -127.0f,
            127.0f};
  }
  const int64_t index = scale_index(matrix, column, k);
  const float scale = to_float(matrix.plane(1).as<Float16>()[index]);
  const float zero = matrix.format == Format::kInt4Asymmetric ? matrix.plane(2).as<uint8_t>()[index] : 8.0f;
  return {scale, zero, -zero, 15.0f - zero};
}

/// Kinds of weights: around zero, all on one side, with outliers, tiny, large, with groups of zeros.
std::vector<std::vector<float>> kinds_of_weights() {
  std::vector<std::vector<float>> kinds;
  kinds.push_back(test::random_floats(kColumns * kInputs, 1, 0.05f));
  kinds.push_back(kinds[0]);
  for (float& w : kinds.back()) w = std::fabs(w) + 0.01f;
  kinds.push_back(kinds[0]);
  for (size_t i = 0; i < kinds.back().size(); i += 97) kinds.back()[i] *= 20.0f;
  kinds.push_back(kinds[0]);
  for (float& w : kinds.back()) w *= 1e-3f;
  kinds.push_back(kinds[0]);
  for (float& w : kinds.back()) w *= 1e5f;
  kinds.push_back(kinds[0]);
  for (size_t i = 0; i < kinds.back().size(); ++i) {
    if (i / 128 % 3 == 1) kinds.back()[i] = 0.0f;
  }
  kinds.push_back(kinds[0]);
  for (size_t i = 0; i < kinds.back().size(); ++i) {
    if (i / 150 % 2 == 1) kinds.back()[i] = -std::fabs(kinds.back()[i]) - 1.0f;
  }
  return kinds;
}

class IntegerFormat : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, IntegerFormat,
                         testing::Values(Format::kInt8, Format::kInt4, Format::kInt4Asymmetric),
                         [](const auto& info) {
                           std::string name(format_name(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(IntegerFormat, WeightsAreOffByAtMostHalfAStepOrAtTheEndOfTheRange) {
  for (const std::vector<float>& weights : kinds_of_weights()) {
    const PackedMatrix matrix = test::pack_store(kColumns, kInputs, weights, GetParam());
    for (int64_t n = 0; n < kColumns; ++n) {
      const std::vector<float> column = test::unpacked_column(matrix, readings(GetParam()).front(), n);
      for (int64_t k = 0; k < kInputs; ++k) {
        const float w = weights[static_cast<size_t>(n * kInputs + k)];
        const float unpacked = column[static_cast<size_t>(k)];
        const Grid grid = grid_of(matrix, n, k);
        const float steps = w / grid.scale;
        if (grid.scale != 0.0f && steps > grid.highest) {
          ASSERT_EQ(unpacked, grid.highest * grid.scale) << w;
        } else if (grid.scale != 0.0f && steps < grid.lowest) {
          ASSERT_EQ(unpacked, grid.lowest * grid.scale) << w;
        } else {
          ASSERT_LE(std::fabs(unpacked - w), std::fabs(grid.scale) * 0.5001f) << w;
        }
      }
    }
  }
}

double squared(double x) {
  return x * x;
}

/// Rounding to nearest with the scale that just holds the extremes.
double simple_error(Format format, std::span<const float> group) {
  float lowest = 0.0f;
  float highest = 0.0f;
  for (const float w : group) {
    lowest = std::min(lowest, w);
    highest = std::max(highest, w);
  }
  const bool asymmetric = format == Format::kInt4Asymmetric;
  const float wide = asymmetric ? (highest - lowest) / 15.0f : std::max(-lowest, highest) / 7.0f;
  const float scale = to_float(to_float16(wide));
  double error = 0.0;
  for (const float w : group) {
    if (scale == 0.0f) {
      error += squared(w);
      continue;
    }
    const float zero = asymmetric ? std::clamp(std::nearbyint(-lowest / scale), 0.0f, 15.0f) : 8.0f;
    const float code = std::clamp(std::nearbyint(w / scale) + zero, 0.0f, 15.0f);
    error += squared(w - (code - zero) * scale);
  }
  return error;
}

TEST(Int4, NoGroupIsWorseThanWithTheScaleThatJustHoldsTheExtremes) {
  for (const Format format : {Format::kInt4, Format::kInt4Asymmetric}) {
    double ours = 0.0;
    double simple = 0.0;
    for (const std::vector<float>& weights : kinds_of_weights()) {
      const PackedMatrix matrix = test::pack_store(kColumns, kInputs, weights, format);
      for (int64_t n = 0; n < kColumns; ++n) {
        const std::vector<float> column = test::unpacked_column(matrix, readings(format).front(), n);
        for (int64_t begin = 0; begin < kInputs; begin += kScaleGroup) {
          // The padding belongs to the last group, as zeros.
          std::vector<float> group(static_cast<size_t>(std::min(kScaleGroup, matrix.k - begin)));
          const int64_t count = std::min(kScaleGroup, kInputs - begin);
          std::copy_n(weights.begin() + n * kInputs + begin, count, group.begin());
          double error = 0.0;
          for (size_t i = 0; i < group.size(); ++i) {
            error += squared(column[static_cast<size_t>(begin) + i] - group[i]);
          }
          const double reference = simple_error(format, group);
          ASSERT_LE(error, reference * (1.0 + 1e-6)) << format_name(format);
          ours += error;
          simple += reference;
        }
      }
    }
    EXPECT_LT(ours, simple) << "other scales are never tried";
  }
}

TEST(Int4, AGroupOnOneSideOfZeroIsBetterOffAsymmetric) {
  std::vector<float> weights = test::random_floats(kColumns * kInputs, 2, 0.05f);
  for (float& w : weights) w = std::fabs(w);
  double error[2] = {0.0, 0.0};
  for (const Format format : {Format::kInt4, Format::kInt4Asymmetric}) {
    const PackedMatrix matrix = test::pack_store(kColumns, kInputs, weights, format);
    for (int64_t n = 0; n < kColumns; ++n) {
      const std::vector<float> column = test::unpacked_column(matrix, readings(format).front(), n);
      for (int64_t k = 0; k < kInputs; ++k) {
        error[format == Format::kInt4Asymmetric] +=
            squared(column[static_cast<size_t>(k)] - weights[static_cast<size_t>(n * kInputs + k)]);
      }
    }
  }
  EXPECT_LT(error[1], error[0] / 2);
}

TEST(Int8, ReturnsWhatAQ8FileHolds) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions model;
  model.dtype = DType::kQ8_0;
  test::write_tiny_gguf(folder.path() / "model.gguf", model);
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model.gguf");
  LoadOptions options;
  options.formats = {Format::kF32, Format::kInt8};
  ThreadTeam team(2);
  std::vector<std::string> warnings;
  for (const MatrixSpec& spec : matrix_specs(checkpoint.config)) {
    const LinearWeight weight = pack_matrix(checkpoint, spec, options, team, warnings);
    for (int64_t n = 0; n < weight.columns; ++n) {
      ASSERT_EQ(test::unpacked_column(*weight.find(Format::kInt8), Reading::kInt8W8A16, n),
                test::unpacked_column(*weight.find(Format::kF32), Reading::kF32, n))
          << spec.name << ", column " << n;
    }
  }
}

TEST(IntegerFormats, TakeTheBitsPerWeightThatTheySay) {
  const std::vector<float> weights = test::random_floats(64 * 256, 3);
  const auto bits = [&](Format format) {
    return 8.0 * static_cast<double>(test::pack_store(64, 256, weights, format).bytes()) / (64 * 256);
  };
  EXPECT_EQ(bits(Format::kInt8), 8.5);
  EXPECT_EQ(bits(Format::kInt4), 4.125);
  EXPECT_EQ(bits(Format::kInt4Asymmetric), 4.1875);
  EXPECT_EQ(bits(Format::kMxfp4), 4.25);
}

// Weights that are not finite, or beyond what an F16 scale reaches, must not become a NaN that spreads.
TEST_P(IntegerFormat, AnythingPacksToFiniteWeights) {
  std::vector<float> weights = test::random_floats(kColumns * kInputs, 4, 0.05f);
  const float odd[] = {NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 1e-45f, 1e-30f, -0.0f};
  for (size_t i = 0; i < weights.size(); i += 53) weights[i] = odd[i / 53 % std::size(odd)];
  const PackedMatrix matrix = test::pack_store(kColumns, kInputs, weights, GetParam());
  for (int64_t n = 0; n < matrix.columns; ++n) {
    for (const float w : test::unpacked_column(matrix, readings(GetParam()).front(), n)) {
      ASSERT_TRUE(std::isfinite(w));
    }
  }
}

// Sums of integers are exact, and what is done in floats is done in one order everywhere.
TEST(IntegerReadings, GiveTheSameBitsOnEveryPath) {
  const std::vector<float> weights = test::random_floats(kColumns * kInputs, 5, 0.05f);
  const std::vector<float> x = test::random_inputs(70, kInputs, 6);
  const std::vector<Format> formats = {Format::kInt8, Format::kInt4, Format::kInt4Asymmetric, Format::kMxfp4,
                                       Format::kMxbf16};
  const LinearWeight weight = test::pack(kColumns, kInputs, weights, formats);
  ThreadTeam team(2);
  LinearWorkspace workspace;
  for (const Format format : formats) {
    for (const int64_t rows : {1, 5, 70}) {
      std::vector<float> expected;
      for (const test::MachinePath& path : test::machine_paths()) {
        const test::SelectedKernels selected(*path.table);
        const std::vector<float> y =
            test::multiply(weight, readings(format).back(), x.data(), rows, team, workspace);
        if (expected.empty()) expected = y;
        ASSERT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
            << reading_name(readings(format).back()) << ", " << rows << " rows on " << path.name;
      }
    }
  }
}

}  // namespace
}  // namespace integer_formats_test
}  // namespace verbatim
