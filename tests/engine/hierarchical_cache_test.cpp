#include "support/long_text.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

TEST(HierarchicalCacheSession, GoesOnAfterItWasCutShort) {
  const Pair& pair = small_pair();
  const std::vector<int32_t> prompt = long_prompt(pair.target, 400);
  const Recipe recipe = load_recipe("quantspec");
  const Recipe plain = plain_with_cache_of(recipe);
  const Asking asking = greedy(40);
  Session session(pair.target, 500, 1);
  session.generate(prompt, options_of(asking), recipe);
  for (const int64_t length : {430, 290, 10}) {
    session.truncate(length);
    std::vector<int32_t> tokens = session.tokens();
    const std::vector<int32_t> more(prompt.begin(), prompt.begin() + 5);
    const GenerateResult result = session.generate(more, options_of(greedy(20)), recipe);
    tokens.insert(tokens.end(), more.begin(), more.end());
    EXPECT_EQ(result.tokens, generate(pair, plain, tokens, greedy(20)).tokens) << length;
  }
}

TEST(HierarchicalCacheSession, EvaluatesAnewForAnotherCache) {
  const Pair& pair = small_pair();
  const std::vector<int32_t> prompt = long_prompt(pair.target, 300);
  const Recipe quantspec = load_recipe("quantspec");
  const Recipe plain = load_recipe("plain");
  Session session(pair.target, 500, 1);
  session.generate(prompt, options_of(greedy(10)), plain);
  const std::vector<int32_t> tokens = session.tokens();
  const GenerateResult result = session.generate({}, options_of(greedy(30)), quantspec);
  EXPECT_EQ(result.tokens, generate(pair, plain_with_cache_of(quantspec), tokens, greedy(30)).tokens);
  EXPECT_EQ(result.stats.prompt_tokens, static_cast<int64_t>(tokens.size()));
}

}  // namespace
}  // namespace verbatim
