#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/tile_codes.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace {

using test::machine_paths;
using test::MachinePath;

// linear() against sums in double of what unpack_column() says the weights are and what the reading makes of
// the activations.

struct Size {
  int64_t columns;
  int64_t k;
};
constexpr Size kSizes[] = {{40, 96}, {33, 160}, {17, 352}, {16, 1408}, {16, 2144},
                           {21, 50}, {70, 300}, {1, 1},    {5, 32}};
constexpr int64_t kRows = 19;

enum class Activations { kF32, kF16, kBf16, kInt8, kWideInt8, kInt4, kTwoBytes, kUpperBytes };

Activations activations_of(const PackedMatrix& matrix, Reading reading) {
  switch (reading) {
    case Reading::kF16:
    case Reading::kF32:
      return Activations::kF32;
    case Reading::kBsfpDraftA16:
      return Activations::kF16;
    case Reading::kBsfpFull:
      return matrix.element == Element::kF16 ? Activations::kF32 : Activations::kBf16;
    case Reading::kInt4W4A4:
      return Activations::kInt4;
    case Reading::kInt8W8A8:
      return Activations::kInt8;
    case Reading::kInt4W4A8:
    case Reading::kInt4AsymmetricW4A8:
    case Reading::kMxfp4W4A8:
    case Reading::kMxbf16Draft:
    case Reading::kBsfpDraft:
    case Reading::kQ8_0Draft:
      return Activations::kWideInt8;
    case Reading::kKQuantsA16:
      return Activations::kTwoBytes;
    case Reading::kQ8_0:
      return kernels().halves_product != nullptr ? Activations::kTwoBytes : Activations::kBf16;
    case Reading::kKQuantsA8:
      return Activations::kUpperBytes;
    default:
      return Activations::kBf16;
  }
}

/// A row of activations as a reading takes them.
std::vector<double> rounded(std::span<const float> x, Activations activations) {
  std::vector<double> result(x.begin(), x.end());
  if (activations == Activations::kBf16) {
    for (size_t i = 0; i < x.size(); ++i) result[i] = to_float(to_bfloat16(x[i]));
  } else if (activations == Activations::kF16) {
    for (size_t i = 0; i < x.size(); ++i) result[i] = to_float(to_float16(x[i]));
  } else if (activations == Activations::kInt8) {
    for (size_t begin = 0; begin < x.size(); begin += 32) {
      float largest = 0.0f;
      for (size_t i = begin; i < begin + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
      const float scale = std::ldexp(1.0f, std::max(std::ilogb(largest), -53) - 6);
      for (size_t i = begin; i < begin + 32; ++i) {
        result[i] = std::clamp(std::nearbyint(x[i] / scale), -127.0f, 127.0f) * scale;
      }
    }
  } else if (activations == Activations::kTwoBytes || activations == Activations::kUpperBytes) {
    for (size_t begin = 0; begin < x.size(); begin += 256) {
      const size_t end = std::min<size_t>(begin + 256, x.size());
      float largest = 0.0f;
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
      const float step = largest / 32000.0f;
      for (size_t i = begin; i < end; ++i) {
        double code = step == 0.0f ? 0.0f : std::nearbyint(x[i] * (32000.0f / largest));
        if (activations == Activations::kUpperBytes) code = 256.0 * std::floor((code + 128.0) / 256.0);
        result[i] = code * step;
      }
    }
  } else if (activations == Activations::kInt4 || activations == Activations::kWideInt8) {
    const float limit = activations == Activations::kInt4 ? 7.0f : 127.0f;
    const float kept = activations == Activations::kInt4 ? 0.9f : 1.0f;
    for (size_t begin = 0; begin < x.size(); begin += 128) {
      const size_t end = std::min(begin + 128, x.size());
      float largest = 0.0f;
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
      const float step = largest * (kept / limit);
      for (size_t i = begin; i < end; ++i) {
        result[i] = std::clamp(std::nearbyint(x[i] * (1.0f / step)), -limit, limit) * step;
      }
    }
  }
  return result;
}

/// What one output is made of: weights that meet rounded activations and those that meet exact ones, and the
/// magnitudes of the terms that are really added, which may be larger than the weights.
struct Column {
  std::vector<float> dense;
  std::vector<float> sparse;
  std::vector<double> magnitudes;
};

Column column_of(const PackedMatrix& matrix, Reading reading, int64_t n) {
  Column column;
  column.sparse.resize(static_cast<size_t>(matrix.k));
  if (matrix.format == Format::kSqueeze3 || matrix.format == Format::kSqueeze4) {
    const uint32_t* const starts = matrix.plane(2).as<uint32_t>();
    for (uint32_t i = starts[n]; i < starts[n + 1]; ++i) {
      column.sparse[matrix.plane(3).as<uint16_t>()[i]] = to_float(matrix.plane(4).as<BFloat16>()[i]);
    }
    const PackedMatrix without = test::copy_of(matrix);
    std::memset(without.plane(2).as<uint32_t>(), 0, without.plane(2).size());
    column.dense = test::unpacked_column(without, reading, n);
  } else {
    column.dense = test::unpacked_column(matrix, reading, n);
  }
  for (size_t k = 0; k < column.dense.size(); ++k) {
    double magnitude = std::fabs(column.dense[k]) + std::fabs(column.sparse[k]);
    if (matrix.format == Format::kInt4Asymmetric) {
      // Codes and zero points are multiplied apart, and each can be 15 steps.
      magnitude =
          30.0 * to_float(matrix.plane(1).as<Float16>()[scale_index(matrix, n, static_cast<int64_t>(k))]);
    }
    if (matrix.format == Format::kKQuants) {
      // Codes and offsets are multiplied apart; both are within the range of the block's weights.
      const auto block = static_cast<int64_t>(k / 256 * 256);
      for (int64_t i = block; i < std::min<int64_t>(block + 256, matrix.k); ++i) {
        magnitude = std::max(magnitude, 4.0 * std::fabs(column.dense[static_cast<size_t>(i)]));
      }
    }
    column.magnitudes.push_back(magnitude);
  }
  return column;
}

/// Σ of n terms in float differs from the exact sum by at most about n · 2^-24 · Σ |term|, whatever the
/// order; a few roundings more are of scales and of what is added to what.
constexpr double kRoundings = 16.0;

void expect_near_reference(const LinearWeight& weight, Reading reading) {
  const PackedMatrix& matrix = weight.stores.front();
  const Activations activations = activations_of(matrix, reading);
  const std::vector<float> x = test::random_inputs(kRows, weight.k, 3);
  ThreadTeam team(2);
  LinearWorkspace workspace;
  for (const int64_t rows : {int64_t{1}, int64_t{3}, int64_t{7}, kRows}) {
    const std::vector<float> y = test::multiply(weight, reading, x.data(), rows, team, workspace);
    for (int64_t n = 0; n < weight.columns; ++n) {
      const Column column = column_of(matrix, reading, n);
      for (int64_t r = 0; r < rows; ++r) {
        const std::span<const float> row(x.data() + r * matrix.k, static_cast<size_t>(matrix.k));
        const std::vector<double> a = rounded(row, activations);
        double sum = 0.0;
        double bound = 0.0;
        for (size_t k = 0; k < row.size(); ++k) {
          sum += a[k] * column.dense[k] + static_cast<double>(row[k]) * column.sparse[k];
          bound += std::max(std::fabs(a[k]), std::fabs(static_cast<double>(row[k]))) * column.magnitudes[k];
        }
        bound *= (static_cast<double>(matrix.k) + kRoundings) * 0x1p-24;
        ASSERT_NEAR(y[static_cast<size_t>(r * matrix.columns + n)], sum, bound)
            << reading_name(reading) << " " << weight.columns << " x " << weight.k << ", row " << r << " of "
            << rows << ", column " << n;
      }
    }
  }
}

class LinearReference : public testing::TestWithParam<std::tuple<MachinePath, Format>> {
 protected:
  test::SelectedKernels selected_{*std::get<0>(GetParam()).table};
};

INSTANTIATE_TEST_SUITE_P(, LinearReference,
                         testing::Combine(testing::ValuesIn(machine_paths()),
                                          testing::ValuesIn(all_formats())),
                         [](const auto& info) { return test::path_and_format(info); });

TEST_P(LinearReference, EveryReadingIsTheProductWithTheUnpackedWeights) {
  const Format format = std::get<1>(GetParam());
  for (const Size size : kSizes) {
    const std::vector<float> weights =
        test::random_floats(static_cast<size_t>(size.columns * size.k), 4, 0.05f);
    for (const Element element : {Element::kBf16, Element::kF16}) {
      if (element == Element::kF16 && format != Format::kBsfp) continue;
      const LinearWeight weight = test::pack(size.columns, size.k, weights, {format}, element);
      for (const Reading reading : readings(format)) {
        expect_near_reference(weight, reading);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The unpacked weights themselves are near what was packed: to half the distance of two values of the format,
// as a fraction of the largest weight around.
TEST(UnpackedWeights, AreNearWhatWasPacked) {
  constexpr int64_t kColumns = 40;
  constexpr int64_t kInputs = 352;
  const std::vector<float> weights = test::random_floats(kColumns * kInputs, 5, 0.05f);
  struct Case {
    Reading reading;
    double error;  // root mean square, relative
  };
  for (const Case c :
       {Case{Reading::kBf16, 0.003}, Case{Reading::kF16, 0.0004}, Case{Reading::kF32, 0.0},
        Case{Reading::kInt8W8A16, 0.008}, Case{Reading::kInt4W4A16, 0.12},
        Case{Reading::kInt4AsymmetricW4A16, 0.12}, Case{Reading::kMxfp4W4A16, 0.13},
        Case{Reading::kBsfpFull, 0.003}, Case{Reading::kBsfpDraft, 0.25}, Case{Reading::kBsfpDraftA16, 0.25},
        Case{Reading::kMxbf16Full, 0.003}, Case{Reading::kMxbf16Draft, 0.13}, Case{Reading::kSqueeze3, 0.2},
        Case{Reading::kSqueeze4, 0.1}}) {
    const PackedMatrix matrix = test::pack_store(kColumns, kInputs, weights, reading_format(c.reading));
    double error = 0.0;
    double total = 0.0;
    for (int64_t n = 0; n < kColumns; ++n) {
      const std::vector<float> column = test::unpacked_column(matrix, c.reading, n);
      for (int64_t k = 0; k < kInputs; ++k) {
        const double w = weights[static_cast<size_t>(n * kInputs + k)];
        error += std::pow(column[static_cast<size_t>(k)] - w, 2.0);
        total += w * w;
      }
    }
    EXPECT_LE(std::sqrt(error / total), c.error) << reading_name(c.reading);
  }
}

}  // namespace
}  // namespace verbatim
