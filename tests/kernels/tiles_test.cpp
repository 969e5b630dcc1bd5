#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "formats/tile_codes.h"
#include "formats/tile_views.h"
#include "support/machine_paths.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace tiles_test {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr int64_t kColumns = 40;
constexpr int64_t kInputs = 340;  // eleven tiles, the last one and the last scale group not full

struct Unpackable {
  Reading reading;
  Element element = Element::kBf16;
};
constexpr Unpackable kUnpackable[] = {
    {Reading::kMxfp4W4A16}, {Reading::kBsfpFull},  {Reading::kBsfpFull, Element::kF16},
    {Reading::kMxbf16Full}, {Reading::kInt4W4A16}, {Reading::kInt4AsymmetricW4A16},
    {Reading::kInt8W8A16},
};

/// Weights with zeros, runs of zeros and tiny ones among them, so that some are escaped.
std::vector<float> weights_with_escaped_ones() {
  std::vector<float> weights = test::random_floats(kColumns * kInputs, 1, 0.05f);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i % 11 == 3) weights[i] = 0.0f;
    if (i % 13 == 5) weights[i] = -0.0f;
    if (i % 7 == 2) weights[i] *= 1e-6f;
    if (i / static_cast<size_t>(kInputs) < 16 && i % static_cast<size_t>(kInputs) / 16 == 4)
      weights[i] = 0.0f;
  }
  return weights;
}

std::vector<uint16_t> unpack(const KernelTable& kernel, const TileView& view, int64_t panels, int64_t step) {
  constexpr int64_t kTile = kInnerStep * kPanelWidth;
  const int64_t tiles = view.panels.tiles;
  std::vector<uint16_t> words(static_cast<size_t>(panels * tiles * kTile), 0xabcd);
  const uint64_t* const starts = view.panels.escaped.starts;
  for (int64_t panel = 0; panel < panels; ++panel) {
    uint64_t escaped = starts != nullptr ? starts[panel] : 0;
    for (int64_t tile = 0; tile < tiles; tile += step) {
      kernel.unpack_tiles[view.reading](view.panels, panel, tile, std::min(step, tiles - tile), &escaped,
                                        words.data() + (panel * tiles + tile) * kTile);
    }
    if (starts != nullptr) {
      EXPECT_EQ(escaped, starts[panel + 1]);
    }
  }
  return words;
}

class Tiles : public testing::TestWithParam<MachinePath> {
 protected:
  const KernelTable& kernel_ = *GetParam().table;
  const KernelTable& scalar_ = *machine_paths().front().table;
};

INSTANTIATE_TEST_SUITE_P(, Tiles, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(Tiles, UnpackToTheSameBitsAsOnTheScalarPathHoweverManyAtATime) {
  const std::vector<float> weights = weights_with_escaped_ones();
  for (const Unpackable& c : kUnpackable) {
    const PackedMatrix matrix =
        test::pack_store(kColumns, kInputs, weights, reading_format(c.reading), c.element);
    const TileView view = tile_view(matrix, c.reading);
    const std::vector<uint16_t> expected = unpack(scalar_, view, matrix.panels(), matrix.tiles());
    for (const int64_t step : {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{5}, matrix.tiles()}) {
      EXPECT_EQ(unpack(kernel_, view, matrix.panels(), step), expected)
          << reading_name(c.reading) << ", " << step << " tiles at a time";
    }
  }
}

/// The step and the zero point by which codes become weights.
struct Step {
  float scale = 1.0f;
  float zero = 0.0f;
};
Step step_of(const PackedMatrix& matrix, int64_t column, int64_t k) {
  if (matrix.format == Format::kInt8) {
    return {to_float(matrix.plane(1).as<Float16>()[tile_scale_index(matrix, column, k)]), 0.0f};
  }
  const int64_t index = scale_index(matrix, column, k);
  if (matrix.format == Format::kInt4) return {to_float(matrix.plane(1).as<Float16>()[index]), 0.0f};
  if (matrix.format == Format::kInt4Asymmetric) {
    return {to_float(matrix.plane(1).as<Float16>()[index]),
            static_cast<float>(matrix.plane(2).as<uint8_t>()[index])};
  }
  return {};
}

TEST_P(Tiles, UnpackToTheReference) {
  const std::vector<float> weights = weights_with_escaped_ones();
  for (const Unpackable& c : kUnpackable) {
    const PackedMatrix matrix =
        test::pack_store(kColumns, kInputs, weights, reading_format(c.reading), c.element);
    const TileView view = tile_view(matrix, c.reading);
    const std::vector<uint16_t> words = unpack(kernel_, view, matrix.panels(), matrix.tiles());
    const bool exact = is_exact(matrix.format);
    for (int64_t n = 0; n < matrix.columns; ++n) {
      const std::vector<float> column = test::unpacked_column(matrix, c.reading, n);
      for (int64_t k = 0; k < matrix.k; ++k) {
        const bool f16 = view.reading == kTileBsfpFullF16;
        const int64_t within = f16 ? k * 16 + n % 16 : k / 2 * 32 + n % 16 * 2 + k % 2;
        const uint16_t bits = words[static_cast<size_t>(n / 16 * matrix.k * 16 + within)];
        const float word = f16 ? to_float(Float16{bits}) : to_float(BFloat16{bits});
        const Step step = step_of(matrix, n, k);
        const float actual = (word - step.zero) * step.scale;
        const float expected = column[static_cast<size_t>(k)];
        ASSERT_EQ(actual, expected) << reading_name(c.reading) << ", column " << n << ", input " << k;
        // Elsewhere −0 may come out as +0, which is the same to a sum.
        if (exact) {
          ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << reading_name(c.reading);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tiles_test
}  // namespace verbatim
