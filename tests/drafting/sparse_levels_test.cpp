#include "drafting/sparse_levels.h"

#include <gtest/gtest.h>

#include "support/test_recipes.h"

namespace verbatim {
namespace {

constexpr CacheShape kShape{.layers = 1, .kv_heads = 1, .head_dim = 64};

DraftLevel level(const std::string& cache) {
  DraftLevel level = test::self_level("full", 4);
  level.cache = cache;
  return level;
}

TEST(SparseLevels, AreThoseThatSeePartsOfThePast) {
  for (const std::string cache : {"full", "draft"}) {
    EXPECT_FALSE(is_sparse(level(cache)));
    EXPECT_EQ(make_view(level(cache), {}, kShape, 256), nullptr);
  }
  for (const std::string cache : {"window", "snapkv"}) {
    EXPECT_TRUE(is_sparse(level(cache)));
    EXPECT_NE(make_view(level(cache), {}, kShape, 256), nullptr);
  }
  EXPECT_FALSE(is_sparse(test::ngram_level(4)));
}

// What a window sees stays where it is; the window of SnapKV's votes does too.
TEST(SparseLevels, CopyWhatSnapKvChooses) {
  EXPECT_EQ(copied_positions(level("snapkv"), 1000), 250 - 32);
  EXPECT_EQ(copied_positions(level("snapkv"), 100), 0);
  EXPECT_EQ(copied_positions(level("window"), 1000), 0);
  EXPECT_EQ(copied_positions(level("full"), 1000), 0);
  EXPECT_EQ(copied_positions(test::ngram_level(4), 1000), 0);
}

TEST(SparseLevels, OfOtherRecipesHaveNoMistakes) {
  Recipe recipe = test::recipe_of("x", {level("draft"), test::ngram_level(3)});
  recipe.cache.kind = CacheOptions::Kind::kHierarchical;
  recipe.planned = true;
  EXPECT_EQ(sparse_mistake(recipe), "");
  recipe.levels[0] = level("snapkv");
  EXPECT_NE(sparse_mistake(recipe), "");
}

}  // namespace
}  // namespace verbatim
