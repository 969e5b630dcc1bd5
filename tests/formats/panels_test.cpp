#include "formats/panels.h"

#include <gtest/gtest.h>

#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace {

class PanelFormat : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(, PanelFormat, testing::Values(Format::kBf16, Format::kF16, Format::kF32),
                         [](const auto& info) { return std::string(format_name(info.param)); });

TEST_P(PanelFormat, UnpackingReturnsWhatWasPackedAndZerosAround) {
  const int64_t columns = 20;
  const int64_t k = 50;
  std::vector<float> weights = test::random_floats(columns * k, 1);
  for (float& weight : weights) weight = to_float(to_bfloat16(weight));
  for (float& weight : weights) weight = to_float(to_float16(weight));  // now exact in every type
  for (float& weight : weights) weight = to_float(to_bfloat16(weight));
  const PackedMatrix matrix = test::pack_store(columns, k, weights, GetParam());
  EXPECT_EQ(matrix.columns, 32);
  EXPECT_EQ(matrix.k, 64);
  for (int64_t n = 0; n < 32; ++n) {
    const std::vector<float> column = test::unpacked_column(matrix, readings(GetParam()).front(), n);
    for (int64_t i = 0; i < 64; ++i) {
      const float expected = n < columns && i < k ? weights[static_cast<size_t>(n * k + i)] : 0.0f;
      ASSERT_EQ(column[static_cast<size_t>(i)], expected) << n << " " << i;
    }
  }
}

TEST(Bf16Panels, ATileIsOneKilobyteOfPairs) {
  const PackedMatrix matrix = make_matrix(Format::kBf16, 16, 64);
  EXPECT_EQ(panel_offset<BFloat16>(matrix, 0, 1), 1);
  EXPECT_EQ(panel_offset<BFloat16>(matrix, 1, 0), 2);
  EXPECT_EQ(panel_offset<BFloat16>(matrix, 0, 2), 32);
  EXPECT_EQ(panel_offset<BFloat16>(matrix, 15, 31), 511);
  EXPECT_EQ(panel_offset<BFloat16>(matrix, 0, 32), 512);
}

}  // namespace
}  // namespace verbatim
