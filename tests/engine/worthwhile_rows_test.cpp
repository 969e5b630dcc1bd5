#include "engine/worthwhile_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using Seconds = std::array<double, PassCosts::kRows.size()>;

/// One second for a pass over one row, and `row` for every other row.
PassCosts line(double row) {
  Seconds seconds{};
  for (size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] = 1.0 + row * static_cast<double>(PassCosts::kRows[i] - 1);
  }
  return PassCosts(seconds);
}

/// One second for a pass over up to 16 rows, two for one over 17 to 32.
PassCosts tiles() {
  Seconds seconds{};
  for (size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] = static_cast<double>((PassCosts::kRows[i] + 15) / 16);
  }
  return PassCosts(seconds);
}

std::vector<int64_t> nodes(const std::vector<std::vector<float>>& offers, int64_t rows, double rate,
                           const PassCosts& costs) {
  const std::vector<std::span<const float>> spans(offers.begin(), offers.end());
  return worthwhile_nodes(spans, rows, rate, costs);
}

TEST(WorthwhileNodes, AreThoseThatGainMoreThanTheBatchDoesInTheTimeOfTheirRows) {
  // A row takes a tenth of a second, in which the batch gains half a token.
  EXPECT_THAT(nodes({{0.9f, 0.6f, 0.3f}, {0.55f, 0.45f}, {}}, 3, 5.0, line(0.1)), ElementsAre(2, 1, 0));
  EXPECT_THAT(nodes({{0.9f, 0.6f, 0.3f}, {0.55f, 0.45f}, {}}, 3, 20.0, line(0.1)), ElementsAre(0, 0, 0));
  EXPECT_THAT(nodes({{0.9f, 0.6f, 0.3f}, {0.55f, 0.45f}, {}}, 3, 5.0, line(0.0)), ElementsAre(3, 2, 0));
  EXPECT_THAT(nodes({}, 3, 5.0, line(0.1)), ElementsAre());
}

TEST(WorthwhileNodes, FillATileThatTheRowsOfOthersHaveBegun) {
  const std::vector<std::vector<float>> offers = {{0.3f, 0.2f, 0.1f}, {0.25f, 0.05f}};
  EXPECT_THAT(nodes(offers, 12, 8.0, tiles()), ElementsAre(3, 1)) << "four rows are free";
  EXPECT_THAT(nodes(offers, 14, 8.0, tiles()), ElementsAre(1, 1));
  EXPECT_THAT(nodes(offers, 16, 8.0, tiles()), ElementsAre(0, 0));
  // Between 17 and 32 rows the next ones are free again, so that many pay for a tile that a few do not.
  const std::vector<float> sure(12, 0.9f);
  EXPECT_THAT(nodes({sure, {0.3f}}, 16, 8.0, tiles()), ElementsAre(12, 1));
  EXPECT_THAT(nodes({std::vector<float>(6, 0.9f), {}}, 16, 8.0, tiles()), ElementsAre(0, 0));
}

TEST(WorthwhileShares, DraftTogetherWhatNoneWouldDraftAlone) {
  const PassCosts drafting = line(0.01);
  const PassCosts verifying = line(0.05);
  const DraftingShare sure{.tokens = 0.9, .rows = 1, .verified = 1};
  const auto taken = [&](const std::vector<DraftingShare>& shares) {
    return worthwhile_shares(shares, 0, 1.5, drafting, verifying);
  };
  EXPECT_THAT(taken({sure}), ElementsAre(false));
  EXPECT_THAT(taken({sure, sure}), ElementsAre(true, true));
  // One that gains less than its own row costs is left out, and the others draft on.
  EXPECT_THAT(taken({sure, {.tokens = 0.05, .rows = 1, .verified = 3}, sure}),
              ElementsAre(true, false, true));
  EXPECT_THAT(taken({}), ElementsAre());
}

TEST(WorthwhileShares, CountTheRowThatEachAddsToTheNextVerification) {
  const DraftingShare sure{.tokens = 0.9, .rows = 1, .verified = 1};
  const std::vector<DraftingShare> shares(4, sure);
  const PassCosts drafting = line(0.0);
  EXPECT_THAT(worthwhile_shares(shares, 0, 1.0, drafting, tiles()), ElementsAre(true, true, true, true));
  EXPECT_THAT(worthwhile_shares(shares, 12, 2.0, drafting, tiles()), ElementsAre(false, false, false, false))
      << "they would begin another tile";
}

TEST(UsualRate, IsThatOfDraftsOfTheBestLengthOrOfNone) {
  EXPECT_DOUBLE_EQ(usual_rate(4, 0.9, line(0.0), nullptr), 4.0);
  Seconds seconds{};
  seconds.fill(0.1);
  const PassCosts cheap(seconds);
  // Drafts of n tokens bring 1 + 0.5 + ... + 0.5^n in 1 + n/10 seconds: the best have two or three.
  EXPECT_NEAR(usual_rate(1, 0.5, line(0.0), &cheap), 1.75 / 1.2, 1e-9);
  EXPECT_NEAR(usual_rate(8, 0.5, line(0.0), &cheap), 8 * 1.75 / 1.2, 1e-9);
  EXPECT_DOUBLE_EQ(usual_rate(8, 0.01, line(0.0), &cheap), 8.0);
  EXPECT_DOUBLE_EQ(usual_rate(8, 0.5, line(1.0), &cheap), 1.0) << "where every row costs a pass";
}

}  // namespace
}  // namespace verbatim
