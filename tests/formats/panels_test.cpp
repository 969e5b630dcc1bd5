#include "formats/panels.h"

#include <gtest/gtest.h>

#include "support/random.h"

namespace verbatim {
namespace {

template <typename T>
class PanelFormat : public testing::Test {};
using Types = testing::Types<BFloat16, Float16, float>;
TYPED_TEST_SUITE(PanelFormat, Types);

TYPED_TEST(PanelFormat, UnpackingReturnsWhatWasPackedAndZerosAround) {
  const int64_t columns = 20;
  const int64_t k = 50;
  PanelMatrix<TypeParam> matrix(columns, k);
  EXPECT_EQ(matrix.columns, 32);
  EXPECT_EQ(matrix.k, 64);
  std::vector<float> weights = test::random_floats(columns * k, 1);
  for (float& weight : weights) weight = to_float(to_bfloat16(weight));
  for (float& weight : weights) weight = to_float(to_float16(weight));  // now exact in every type
  for (float& weight : weights) weight = to_float(to_bfloat16(weight));
  pack_panel(matrix, 0, std::span<const float>(weights).first(16 * k), 16);
  pack_panel(matrix, 1, std::span<const float>(weights).subspan(16 * k), 4);
  std::vector<float> column(64);
  for (int64_t n = 0; n < 32; ++n) {
    unpack_column(matrix, n, column);
    for (int64_t i = 0; i < 64; ++i) {
      const float expected = n < columns && i < k ? weights[static_cast<size_t>(n * k + i)] : 0.0f;
      ASSERT_EQ(column[static_cast<size_t>(i)], expected) << n << " " << i;
    }
  }
}

TEST(Bf16Panels, ATileIsOneKilobyteOfPairs) {
  const PanelMatrix<BFloat16> matrix(16, 64);
  EXPECT_EQ(panel_offset(matrix, 0, 1), 1);
  EXPECT_EQ(panel_offset(matrix, 1, 0), 2);
  EXPECT_EQ(panel_offset(matrix, 0, 2), 32);
  EXPECT_EQ(panel_offset(matrix, 15, 31), 511);
  EXPECT_EQ(panel_offset(matrix, 0, 32), 512);
}

}  // namespace
}  // namespace verbatim
