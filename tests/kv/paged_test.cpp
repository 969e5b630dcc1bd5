#include "kv/paged.h"

#include <gtest/gtest.h>

#include <random>

#include "kv/dense.h"
#include "kv/prompt_cache.h"
#include "support/random.h"

namespace verbatim {
namespace paged_test {
namespace {

constexpr CacheShape kShape{.layers = 2, .kv_heads = 3, .head_dim = 40};

/// What a sequence has at a position: different for every sequence, position, layer and head.
std::vector<float> numbers(int sequence, int64_t position, int64_t layer, int64_t head) {
  const auto seed = static_cast<uint32_t>(((sequence * 1000 + position) * 2 + layer) * 3 + head);
  return test::random_floats(80, seed);
}

void write(KvCache& cache, int sequence, int64_t first, int64_t end) {
  for (int64_t p = first; p < end; ++p) {
    for (int64_t layer = 0; layer < kShape.layers; ++layer) {
      for (int64_t head = 0; head < kShape.kv_heads; ++head) {
        const std::vector<float> both = numbers(sequence, p, layer, head);
        cache.write(layer, head, p, both.data(), both.data() + 40);
      }
    }
  }
  cache.set_length(end);
}

/// Fills an empty cache.
void fill(PagedCache& cache, int sequence, int64_t positions) {
  ASSERT_TRUE(cache.reserve(positions));
  write(cache, sequence, 0, positions);
}

/// Expects two caches to hold the same bits at a position.
void expect_same(const KvCache& a, const KvCache& b, int64_t position) {
  for (int64_t layer = 0; layer < kShape.layers; ++layer) {
    for (int64_t head = 0; head < kShape.kv_heads; ++head) {
      const PanelChunk one = a.head(layer, head).chunk(position / 128);
      const PanelChunk two = b.head(layer, head).chunk(position / 128);
      const int64_t slot = position % 128;
      for (int64_t d = 0; d < 64; ++d) {
        const int64_t key = slot / 16 * 64 * 16 + d / 2 * 32 + slot % 16 * 2 + d % 2;
        ASSERT_EQ(one.keys[key], two.keys[key]) << position << " " << d;
        const auto value = [&](const PanelChunk& chunk) {
          return chunk.values[d / 16 * chunk.positions * 16 + slot / 2 * 32 + d % 16 * 2 + slot % 2];
        };
        ASSERT_EQ(value(one), value(two)) << position << " " << d;
      }
    }
  }
}

TEST(PagedCache, HoldsWhatADenseOneHoldsHoweverItGrows) {
  PagePool pool(kShape, 1024);
  for (const int64_t step : {1, 7, 32, 50, 128, 300}) {
    PagedCache paged(pool);
    DenseCache dense(kShape, 300);
    for (int64_t first = 0; first < 300; first += step) {
      const int64_t end = std::min<int64_t>(300, first + step);
      ASSERT_TRUE(paged.reserve(end));
      ASSERT_GE(paged.capacity(), end);
      ASSERT_LT(paged.capacity(), end + 32);
      write(paged, 1, first, end);
      write(dense, 1, first, end);
    }
    for (int64_t p = 0; p < 300; ++p) expect_same(paged, dense, p);
  }
  EXPECT_EQ(pool.free_units(), pool.total_units());
}

TEST(PagedCache, WithoutRoomKeepsWhatItHas) {
  PagePool pool(kShape, 256);
  PagedCache first(pool);
  fill(first, 1, 150);
  PagedCache second(pool);
  EXPECT_TRUE(second.reserve(60));
  EXPECT_FALSE(second.reserve(120));
  EXPECT_FALSE(first.reserve(257));
  DenseCache dense(kShape, 256);
  write(dense, 1, 0, 150);
  for (int64_t p = 0; p < 150; ++p) expect_same(first, dense, p);
  second.release();
  EXPECT_EQ(second.capacity(), 0);
  EXPECT_TRUE(first.reserve(160));
}

TEST(PagedCache, GivesBackWhatLiesBehindItsLength) {
  PagePool pool(kShape, 1024);
  PagedCache cache(pool);
  fill(cache, 1, 500);
  cache.set_length(200);
  cache.trim();
  EXPECT_EQ(cache.capacity(), 256);
  cache.release();
  EXPECT_EQ(pool.free_units(), pool.total_units());
}

// Values of positions that no row sees are multiplied by zero: keys of another sequence, infinite perhaps,
// must not be left there.
TEST(PagePool, HandsOutPagesThatAreZero) {
  PagePool pool(kShape, 128);
  for (int round = 0; round < 3; ++round) {
    const auto page = pool.take(4 - round);
    ASSERT_TRUE(page);
    BFloat16* const data = pool.data(*page);
    const int64_t count = page->units * pool.unit_bytes() / 2;
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(data[i].bits, 0);
    std::fill_n(data, count, BFloat16{0x7f80});
    pool.give_back(*page);
  }
}

TEST(PagePool, LosesAndDoublesNothingOverManyTurns) {
  PagePool pool(kShape, 20 * 128);
  std::mt19937 random(5);
  std::vector<std::pair<PagePool::Page, int>> held;
  int64_t units = 0;
  const auto overlap = [](const PagePool::Page& a, const PagePool::Page& b) {
    return a.block == b.block && a.first < b.first + b.units && b.first < a.first + a.units;
  };
  for (int turn = 0; turn < 4000; ++turn) {
    const auto choice = random() % 3;
    if (choice == 0 || held.empty()) {
      const auto page = pool.take(1 + static_cast<int32_t>(random() % 4));
      if (!page) continue;
      for (const auto& [other, owners] : held) ASSERT_FALSE(overlap(*page, other));
      held.emplace_back(*page, 1);
      units += page->units;
    } else {
      auto& [page, owners] = held[random() % held.size()];
      if (choice == 1) {
        pool.share(page);
        ++owners;
      } else {
        pool.give_back(page);
        if (--owners == 0) {
          units -= page.units;
          page.units = 0;
        }
      }
      std::erase_if(held, [](const auto& entry) { return entry.second == 0; });
    }
    ASSERT_EQ(pool.free_units(), pool.total_units() - units);
  }
}

std::vector<int32_t> counting(int32_t from, int32_t count) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(from + i);
  return tokens;
}

TEST(PromptCache, SharesWholeChunksAndCopiesPartsOfOne) {
  PagePool pool(kShape, 4096);
  PromptCache prompts(pool);
  std::vector<int32_t> tokens = counting(0, 300);
  PagedCache first(pool);
  fill(first, 1, 300);
  prompts.keep(tokens, first, true);
  first.release();

  // Parts at position 280.
  tokens.resize(280);
  for (const int32_t other : counting(1000, 100)) tokens.push_back(other);
  const int64_t free = pool.free_units();
  PagedCache second(pool);
  prompts.find(tokens, second);
  EXPECT_EQ(second.length(), 280);
  EXPECT_EQ(pool.free_units(), free - 1);  // for the 24 that were copied
  DenseCache dense(kShape, 300);
  write(dense, 1, 0, 300);
  for (int64_t p = 0; p < 280; ++p) expect_same(second, dense, p);
  // What it writes now does not reach the one that began alike.
  ASSERT_TRUE(second.reserve(380));
  write(second, 2, 280, 380);
  PagedCache third(pool);
  prompts.find(counting(0, 301), third);
  EXPECT_EQ(third.length(), 300);
  for (int64_t p = 0; p < 300; ++p) expect_same(third, dense, p);
}

TEST(PromptCache, LeavesTheLastTokenToBeEvaluated) {
  PagePool pool(kShape, 4096);
  PromptCache prompts(pool);
  PagedCache first(pool);
  fill(first, 1, 256);
  prompts.keep(counting(0, 256), first, true);
  PagedCache second(pool);
  prompts.find(counting(0, 256), second);
  EXPECT_EQ(second.length(), 255);
  PagedCache third(pool);
  prompts.find(counting(0, 1), third);
  EXPECT_EQ(third.length(), 0);
  PagedCache other(pool);
  prompts.find(counting(7, 256), other);
  EXPECT_EQ(other.length(), 0);
}

TEST(PromptCache, OfASequenceThatGoesOnKeepsWholeChunks) {
  PagePool pool(kShape, 4096);
  PromptCache prompts(pool);
  PagedCache first(pool);
  fill(first, 1, 200);
  prompts.keep(counting(0, 200), first, false);
  PagedCache second(pool);
  prompts.find(counting(0, 200), second);
  EXPECT_EQ(second.length(), 128);
}

TEST(PromptCache, ForgetsWhatWasNotUsedForLongestAndNothingThatIsUsed) {
  PagePool pool(kShape, 3 * 128);
  PromptCache prompts(pool);
  const auto run = [&](int32_t from) {
    PagedCache cache(pool);
    while (!cache.reserve(128)) {
      if (!prompts.evict()) return false;
    }
    write(cache, from, 0, 128);
    prompts.keep(counting(from, 128), cache, true);
    return true;
  };
  for (const int32_t from : {1000, 2000, 3000}) ASSERT_TRUE(run(from));
  EXPECT_EQ(prompts.unused_units(), pool.total_units());
  PagedCache user(pool);
  prompts.find(counting(1000, 200), user);
  EXPECT_EQ(user.length(), 128);
  EXPECT_EQ(prompts.unused_units(), pool.total_units() - 4);
  for (const int32_t from : {4000, 5000, 6000}) ASSERT_TRUE(run(from));
  PagedCache again(pool);
  prompts.find(counting(1000, 200), again);
  EXPECT_EQ(again.length(), 128);
  PagedCache gone(pool);
  prompts.find(counting(2000, 200), gone);
  EXPECT_EQ(gone.length(), 0);
}

}  // namespace
}  // namespace paged_test
}  // namespace verbatim
