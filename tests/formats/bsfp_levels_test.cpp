#include <gtest/gtest.h>

#include <cmath>

#include "formats/bsfp.h"
#include "support/packed.h"
#include "support/random.h"

namespace verbatim {
namespace {

constexpr int64_t kColumns = 32;
constexpr int64_t kInputs = 256;

TEST(BsfpLevels, AreThePapersPowersOfTwoTimesAScale) {
  const std::vector<float> weights = test::random_floats(kColumns * kInputs, 3, 0.05f);
  const PackedMatrix matrix = test::pack_store(kColumns, kInputs, weights, Format::kBsfp);
  std::vector<float> panel(static_cast<size_t>(matrix.k * kPanelWidth));
  unpack_bsfp_levels(matrix, 1, panel.data());
  int64_t zeros_of_bytes = 0;
  for (int64_t n = 0; n < kPanelWidth; ++n) {
    const std::vector<float> paper = test::unpacked_column(matrix, Reading::kBsfpDraftA16, kPanelWidth + n);
    const std::vector<float> bytes = test::unpacked_column(matrix, Reading::kBsfpDraft, kPanelWidth + n);
    for (size_t k = 0; k < paper.size(); ++k) {
      EXPECT_EQ(panel[k * kPanelWidth + static_cast<size_t>(n)], paper[k]);
      ASSERT_NE(paper[k], 0.0f);
      // All are the group's scale but for a power of two; where bytes hold the level too, the two are one.
      int exponent = 0;
      const float scale = std::abs(std::frexp(paper[k / 128 * 128], &exponent));
      EXPECT_EQ(std::abs(std::frexp(paper[k], &exponent)), scale);
      if (bytes[k] != 0.0f) {
        EXPECT_EQ(paper[k], bytes[k]);
      }
      zeros_of_bytes += bytes[k] == 0.0f ? 1 : 0;
    }
  }
  EXPECT_GT(zeros_of_bytes, 0);
}

}  // namespace
}  // namespace verbatim
