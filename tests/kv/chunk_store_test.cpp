#include "kv/chunk_store.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kv/prompt_cache.h"
#include "support/random.h"
#include "support/test_data.h"

namespace verbatim {
namespace chunk_store_test {
namespace {

constexpr CacheShape kShape{.layers = 2, .kv_heads = 1, .head_dim = 32};
constexpr int64_t kMost = int64_t{1} << 30;
constexpr auto kNever = [] { return false; };

class ChunkStoreTest : public testing::Test {
 protected:
  /// Fills an empty cache with numbers that depend on the seed and the position.
  static void fill(PagedCache& cache, uint32_t seed, int64_t positions) {
    ASSERT_TRUE(cache.reserve(positions));
    for (int64_t p = 0; p < positions; ++p) {
      for (int64_t layer = 0; layer < kShape.layers; ++layer) {
        const std::vector<float> both =
            test::random_floats(64, seed + static_cast<uint32_t>(p * kShape.layers + layer));
        cache.write(layer, 0, p, both.data(), both.data() + 32);
      }
    }
    cache.set_length(positions);
  }
  static std::vector<int32_t> tokens(int32_t first, size_t count) {
    std::vector<int32_t> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
  }
  /// The bytes of a whole chunk.
  static std::string chunk(const PagePool& pool, const PagedCache& cache, size_t number) {
    const PagePool::Page& page = cache.pages()[number];
    return {reinterpret_cast<const char*>(pool.data(page)), static_cast<size_t>(4 * pool.unit_bytes())};
  }
  /// What a cache holds of these tokens after an earlier store and prompt cache kept `kept` of them.
  int64_t found(PagePool& pool, const std::vector<int32_t>& tokens, PagedCache& cache,
                const ChunkOrigin& origin) const {
    ChunkStore store(pool, folder_.path(), kMost);
    EXPECT_TRUE(cache.reserve(std::ssize(tokens)));
    const int64_t before = cache.length();
    const int64_t became_known = store.find(origin, tokens, cache, kNever);
    EXPECT_EQ(became_known, cache.length() - before);
    EXPECT_EQ(store.errors(), 0);
    return cache.length();
  }
  void keep(PagePool& pool, const std::vector<int32_t>& tokens, const PagedCache& cache) const {
    ChunkStore store(pool, folder_.path(), kMost);
    PromptCache prompts(pool, &store, &origin_);
    prompts.keep(tokens, cache, true);
  }

  test::TemporaryFolder folder_;
  ChunkOrigin origin_{
      .model = {}, .path = {'p'}, .reading = {'f'}, .layers = 2, .kv_heads = 1, .head_dim = 32};
};

TEST_F(ChunkStoreTest, FindsWholeChunksAgainBitForBit) {
  PagePool pool(kShape, 4096);
  PagedCache first(pool);
  fill(first, 1, 300);
  const std::vector<int32_t> known = tokens(0, 300);
  keep(pool, known, first);
  PagedCache second(pool);
  EXPECT_EQ(found(pool, known, second, origin_), 256);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(chunk(pool, second, i), chunk(pool, first, i)) << i;
  // The last token is left out, and a chunk counts only with all before it.
  PagedCache shorter(pool);
  EXPECT_EQ(found(pool, tokens(0, 256), shorter, origin_), 128);
  PagedCache other(pool);
  EXPECT_EQ(found(pool, tokens(128, 172), other, origin_), 0);
  PagedCache parting(pool);
  std::vector<int32_t> changed = known;
  changed[200] = 9999;
  EXPECT_EQ(found(pool, changed, parting, origin_), 128);
  ChunkOrigin another = origin_;
  another.model[3] = std::byte{1};
  PagedCache foreign(pool);
  EXPECT_EQ(found(pool, known, foreign, another), 0);
  PagedCache none(pool);
  EXPECT_EQ(found(pool, tokens(0, 1), none, origin_), 0);
}

TEST_F(ChunkStoreTest, GoesOnWhereTheMemoryEnds) {
  PagePool pool(kShape, 4096);
  PagedCache first(pool);
  fill(first, 1, 400);
  const std::vector<int32_t> known = tokens(0, 400);
  keep(pool, known, first);
  // One chunk is in memory, and of the next some positions.
  PromptCache prompts(pool);
  PagedCache part(pool);
  fill(part, 1, 180);
  prompts.keep(std::span(known).first(180), part, true);
  PagedCache second(pool);
  prompts.find(known, second);
  EXPECT_EQ(second.length(), 180);
  EXPECT_EQ(found(pool, known, second, origin_), 384);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(chunk(pool, second, i), chunk(pool, first, i)) << i;
}

TEST_F(ChunkStoreTest, DeletesADamagedChunkAndWritesItAgain) {
  PagePool pool(kShape, 4096);
  PagedCache first(pool);
  fill(first, 1, 140);
  const std::vector<int32_t> known = tokens(0, 140);
  keep(pool, known, first);
  const auto file = std::filesystem::directory_iterator(folder_.path())->path();
  std::string bytes = test::read_file(file);
  bytes[5000] = static_cast<char>(bytes[5000] ^ 1);
  folder_.write(file.filename(), bytes);
  ChunkStore store(pool, folder_.path(), kMost);
  PagedCache second(pool);
  fill(second, 2, 20);  // which the damaged chunk must not touch
  ASSERT_TRUE(second.reserve(140));
  const std::string before = chunk(pool, second, 0);
  EXPECT_EQ(store.find(origin_, known, second, kNever), 0);
  EXPECT_EQ(second.length(), 20);
  EXPECT_EQ(chunk(pool, second, 0), before);
  EXPECT_FALSE(std::filesystem::exists(file));
  keep(pool, known, first);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(store.find(origin_, known, second, kNever), 108);
  EXPECT_EQ(chunk(pool, second, 0), chunk(pool, first, 0));
}

TEST_F(ChunkStoreTest, HoldsNoPageWhenItEndsAndGivesUpWhatWaits) {
  PagePool pool(kShape, 64 * 128);
  PagedCache cache(pool);
  fill(cache, 1, 40 * 128);
  const std::vector<int32_t> known = tokens(0, 40 * 128);
  {
    ChunkStore store(pool, folder_.path(), kMost);
    PromptCache prompts(pool, &store, &origin_);
    prompts.keep(known, cache, true);
    int given_up = 0;
    while (store.give_up()) ++given_up;
    EXPECT_EQ(store.waiting_units(), 0);
    EXPECT_LE(given_up, 32);  // half of the pool waits at most
    cache.release();
    while (prompts.evict()) {
    }
    EXPECT_EQ(pool.free_units(), pool.total_units());
  }
  // What was given up is no hole: all that is there is found.
  const auto files = std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  PagedCache second(pool);
  EXPECT_EQ(found(pool, known, second, origin_), std::min<int64_t>(files, 39) * 128);
}

TEST_F(ChunkStoreTest, StopsReadingWhenNobodyWaits) {
  PagePool pool(kShape, 4096);
  PagedCache first(pool);
  fill(first, 1, 600);
  const std::vector<int32_t> known = tokens(0, 600);
  keep(pool, known, first);
  ChunkStore store(pool, folder_.path(), kMost);
  PagedCache second(pool);
  ASSERT_TRUE(second.reserve(600));
  int asked = 0;
  EXPECT_EQ(store.find(origin_, known, second, [&] { return ++asked > 2; }), 256);
}

TEST_F(ChunkStoreTest, CountsWhatFailsAndGoesOn) {
  PagePool pool(kShape, 4096);
  PagedCache first(pool);
  fill(first, 1, 300);
  const std::vector<int32_t> known = tokens(0, 300);
  const std::filesystem::path folder = folder_.path() / "removed";
  ChunkStore store(pool, folder, kMost);
  std::filesystem::remove_all(folder);
  PromptCache prompts(pool, &store, &origin_);
  prompts.keep(known, first, true);
  for (int i = 0; i < 1000 && store.errors() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(store.errors(), 2);
  PagedCache second(pool);
  ASSERT_TRUE(second.reserve(300));
  EXPECT_EQ(store.find(origin_, known, second, kNever), 0);
  PagedCache third(pool);
  prompts.find(known, third);
  EXPECT_EQ(third.length(), 299);
}

}  // namespace
}  // namespace chunk_store_test
}  // namespace verbatim
