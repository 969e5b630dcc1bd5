#include "speculation/store_costs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/environment.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

TEST(StoreCosts, ANestedStoreKeepsUpWithinATenthAtEveryNumberOfRows) {
  StoreCosts costs;
  costs.bf16 = {1.0, 1.0, 1.1, 1.5, 2.5};
  costs.nested = {1.05, 1.0, 1.2, 1.5, 2.0};
  EXPECT_TRUE(nested_keeps_up(costs));
  for (size_t i = 0; i < StoreCosts::kRows.size(); ++i) {
    StoreCosts slower = costs;
    slower.nested[i] = 1.11 * costs.bf16[i];
    EXPECT_FALSE(nested_keeps_up(slower)) << StoreCosts::kRows[i];
  }
}

TEST(StoreCosts, AreMeasuredOnceAndKept) {
  TOO_LONG_FOR_SANITIZERS();
  const test::TemporaryFolder folder;
  test::Environment environment;
  environment.set("VERBATIM_CACHE_DIR", folder.path().string());
  ThreadTeam team(1);
  const StoreCosts measured = store_costs(team);
  for (size_t i = 0; i < StoreCosts::kRows.size(); ++i) {
    EXPECT_GT(measured.bf16[i], 0.0);
    EXPECT_GT(measured.nested[i], 0.0);
  }
  const StoreCosts kept = store_costs(team);
  EXPECT_EQ(kept.bf16, measured.bf16);
  EXPECT_EQ(kept.nested, measured.nested);
  // Other threads take other times.
  ThreadTeam pair(2);
  EXPECT_NE(store_costs(pair).bf16, measured.bf16);
}

}  // namespace
}  // namespace verbatim
