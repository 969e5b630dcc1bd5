#include <array>

#include "engine/model_access.h"
#include "kv/make_cache.h"
#include "support/long_text.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

class HierarchicalCacheText : public testing::TestWithParam<MachinePath> {
 protected:
  SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, HierarchicalCacheText, testing::ValuesIn(machine_paths()),
                         [](const auto& info) { return path_name(info); });

// Over prompts and texts that cross flushes: every draft length, any threads and any chunks.
TEST_P(HierarchicalCacheText, IsThePlainOneWhateverDrafts) {
  const bool last = GetParam().name == machine_paths().back().name;
  const bool scalar = GetParam().name == "scalar";
  const Pair& pair = small_pair();
  const std::vector<int32_t> prompt = long_prompt(pair.target, 300);
  for (const float temperature : {0.0f, 0.8f}) {
    if (scalar && temperature > 0.0f) continue;
    Asking asking{.sampling = {.temperature = temperature, .seed = 5}, .tokens = scalar ? 90 : 150};
    Recipe recipe = load_recipe("quantspec");
    const GenerateResult plain = generate(pair, plain_with_cache_of(recipe), prompt, asking);
    Work work;
    for (int32_t length = 1; length <= 16; length += last ? 1 : scalar ? 8 : 5) {
      recipe.levels.front().length = length;
      recipe.levels.front().threshold = 0.0f;
      asking.threads = length % 3 + 1;
      asking.prefill_chunk = std::array<int64_t, 4>{512, 1, 100, 128}[static_cast<size_t>(length % 4)];
      expect_plain_text(pair, recipe, prompt, asking, plain, work);
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(work.accepted, 0);
    EXPECT_LT(work.accepted, work.drafted);
  }
}

/// The chunks that a row at this position meets as codes.
int64_t coded_chunks(const Recipe& recipe, const Model& model, int64_t position) {
  const CacheShape shape{1, 1, data_of(model).decoder.cache_shape().head_dim};
  return make_cache(recipe.cache, shape, kAttentionChunk)->head(0, 0).coded.end_chunk(position);
}

/// Everything that must not change a text of QuantSpec, in turns: over 16 lengths every number of threads and
/// every chunk.
struct Turn {
  int32_t length;
  Asking asking(Asking asking) const {
    constexpr std::array<int64_t, 4> kChunks = {1, 37, 128, 512};
    asking.threads = length % 3 + 1;
    asking.prefill_chunk = kChunks[static_cast<size_t>((length + length / 4) % 4)];
    return asking;
  }
  Recipe recipe(const char* name) const {
    Recipe recipe = load_recipe(name);
    recipe.levels.front().length = length;
    recipe.levels.front().threshold = 0.0f;
    return recipe;
  }
};

// A trained model nearly to the end of its context: texts that are decoded over three or four flushes, most
// of whose past is codes. On the last path alone, because of the time.
TEST(HierarchicalCacheLongText, IsThePlainOneWhateverDrafts) {
  const Pair& pair = default_pair({"full", "mxfp4"});
  const Recipe cache = load_recipe("quantspec");
  Work work;
  int32_t text = 0;
  for (const size_t tokens : {500, 560}) {
    const std::vector<int32_t> prompt = long_prompt(pair.target, tokens, tokens > 500 ? 6 : 0);
    ASSERT_EQ(prompt.size(), tokens);
    for (const float temperature : {0.0f, 0.8f}) {
      const Asking asking{.sampling = {.temperature = temperature, .seed = 11}, .tokens = 400, .threads = 2};
      const auto first = static_cast<int64_t>(tokens);
      ASSERT_GT(coded_chunks(cache, pair.target, first), 0) << "codes from the first row on";
      ASSERT_GE(coded_chunks(cache, pair.target, first + asking.tokens - 2),
                coded_chunks(cache, pair.target, first) + 3);
      const GenerateResult plain = generate(pair, plain_with_cache_of(cache), prompt, asking);
      ASSERT_EQ(std::ssize(plain.tokens), asking.tokens);
      const auto expect_plain = [&](const char* name, int32_t length) {
        const Turn turn{length};
        expect_plain_text(pair, turn.recipe(name), prompt, turn.asking(asking), plain, work);
      };
      for (int32_t length = text + 1; length <= 16; length += 4) {
        expect_plain("quantspec", length);
        if (HasFatalFailure()) return;
      }
      // Each of these for both prompts and at both temperatures.
      expect_plain(text % 3 == 0 ? "quantspec-kv" : "quantspec-weights", 4 + 3 * text);
      if (HasFatalFailure()) return;
      ++text;
    }
  }
  EXPECT_GT(work.accepted, 0);
  EXPECT_LT(work.accepted, work.drafted);
}

// Other ways to read and to cut: the weights alone, the cache alone, small groups, a larger buffer, four
// bits.
TEST_P(HierarchicalCacheText, IsThePlainOneForEveryKindOfCache) {
  if (GetParam().name == "scalar") GTEST_SKIP() << "minutes; the caches' own tests run on it";
  const Pair& pair = small_pair();
  const std::vector<int32_t> prompt = long_prompt(pair.target, 380);
  for (const char* cache :
       {"hierarchical:group=32", "hierarchical:buffer=512", "hierarchical:bits=4", "int8", "f16", "f32"}) {
    const Asking asking{.sampling = {.temperature = 0.7f, .seed = 3}, .tokens = 60, .threads = 2};
    Recipe plain = load_recipe("plain");
    plain.cache = parse_cache(cache, "test");
    const GenerateResult expected = generate(pair, plain, prompt, asking);
    for (const char* name : {"quantspec", "quantspec-kv", "quantspec-weights", "ngram", "draft-model"}) {
      Recipe recipe = load_recipe(name);
      recipe.cache = plain.cache;
      Work work;
      expect_plain_text(pair, recipe, prompt, asking, expected, work);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace verbatim
