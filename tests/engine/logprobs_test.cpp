#include <gtest/gtest.h>

#include <cmath>

#include "support/byte_model.h"
#include "support/packed.h"

namespace verbatim {
namespace logprobs_test {
namespace {

GenerateResult generated(const Recipe& recipe, const SamplingOptions& sampling) {
  const test::Pair& pair = test::byte_pair();
  Session session(pair.target, 64, 1);
  session.set_draft_model(pair.draft);
  GenerateOptions options;
  options.sampling = sampling;
  options.max_tokens = 24;
  options.ignore_eos = true;
  options.top_logprobs = 5;
  return session.generate(pair.target.encode("abcabc"), options, recipe);
}

TEST(Logprobs, AreTheSameBitForBitWithDraftsWithoutAndInAScore) {
  const Model& model = test::byte_pair().target;
  for (const SamplingOptions& sampling : test::various_sampling()) {
    SCOPED_TRACE(testing::Message() << sampling);
    const GenerateResult plain = generated(load_recipe("plain"), sampling);
    ASSERT_EQ(plain.logprobs.size(), plain.tokens.size());
    std::vector<int32_t> text = model.encode("abcabc");
    const size_t prompt = text.size();
    text.insert(text.end(), plain.tokens.begin(), plain.tokens.end());
    const std::vector<ScoredToken> scored = score(model, text, {.top_logprobs = 5, .threads = 1});
    ASSERT_EQ(scored.size(), text.size() - 1);
    EXPECT_TRUE(std::equal(plain.logprobs.begin(), plain.logprobs.end(), scored.begin() + prompt - 1));
    for (const Recipe& recipe : test::byte_recipes()) {
      const GenerateResult drafted = generated(recipe, sampling);
      EXPECT_EQ(drafted.tokens, plain.tokens) << recipe.name;
      EXPECT_EQ(drafted.logprobs, plain.logprobs) << recipe.name;
    }
  }
}

TEST(Logprobs, NameTheTokenThatCameAndTheLikeliestInOrder) {
  const GenerateResult result = generated(load_recipe("plain"), {.temperature = 1.2f, .seed = 4});
  for (size_t i = 0; i < result.tokens.size(); ++i) {
    const ScoredToken& scored = result.logprobs[i];
    EXPECT_EQ(scored.token, result.tokens[i]);
    EXPECT_LT(scored.logprob, 0.0);
    ASSERT_EQ(scored.top.size(), 5u);
    EXPECT_LE(scored.logprob, scored.top[0].logprob);
    for (size_t t = 1; t < 5; ++t) EXPECT_LE(scored.top[t].logprob, scored.top[t - 1].logprob);
    for (const TokenLogprob& top : scored.top) {
      if (top.token == scored.token) {
        EXPECT_EQ(top.logprob, scored.logprob);
      }
    }
  }
}

TEST(Logprobs, AreLeftOutUnlessAskedForAndEndWithTheText) {
  const test::Pair& pair = test::byte_pair();
  Session session(pair.target, 64, 1);
  GenerateOptions options;
  options.max_tokens = 8;
  EXPECT_TRUE(session.generate({5}, options, load_recipe("plain")).logprobs.empty());
  options.top_logprobs = 0;
  options.stop_tokens = {generated(load_recipe("plain"), {}).tokens[2]};
  session.truncate(0);
  const GenerateResult result =
      session.generate(pair.target.encode("abcabc"), options, test::made_recipes(100)[0]);
  EXPECT_EQ(result.stats.finish, FinishReason::kEndOfSequence);
  ASSERT_EQ(result.logprobs.size(), result.tokens.size());
  EXPECT_TRUE(result.logprobs[0].top.empty());
  options.top_logprobs = 65;
  EXPECT_THROW(session.generate({5}, options, load_recipe("plain")), Error);
}

TEST(Logprobs, ComeWithThePiecesOfAStream) {
  const Model& model = test::byte_pair().target;
  Engine engine(model, {.max_batch = 2, .capacity = 64, .threads = 1});
  GenerateOptions options;
  options.max_tokens = 24;
  options.ignore_eos = true;
  options.top_logprobs = 5;
  TokenStream stream = engine.submit({model.encode("abcabc"), options, test::made_recipes(100)[0]});
  std::vector<ScoredToken> streamed;
  std::vector<int32_t> tokens;
  while (const auto piece = stream.next()) {
    ASSERT_EQ(piece->logprobs.size(), piece->tokens.size());
    streamed.insert(streamed.end(), piece->logprobs.begin(), piece->logprobs.end());
    tokens.insert(tokens.end(), piece->tokens.begin(), piece->tokens.end());
  }
  const GenerateResult result = stream.wait();
  EXPECT_EQ(tokens, result.tokens);
  EXPECT_EQ(streamed, result.logprobs);
  EXPECT_EQ(streamed, generated(load_recipe("plain"), {}).logprobs);
}

TEST(Score, IsTheSameForEveryNumberOfThreadsAndAgreesWithThePerplexity) {
  const Model& model = test::byte_pair().target;
  std::string text;
  for (int i = 0; i < 40; ++i) text += static_cast<char>('a' + i * 7 % 26);
  const std::vector<int32_t> tokens = model.encode(text);
  const std::vector<ScoredToken> one = score(model, tokens, {.threads = 1});
  EXPECT_EQ(score(model, tokens, {.threads = 2}), one);
  double sum = 0;
  for (const ScoredToken& scored : one) sum -= scored.logprob;
  const PerplexityResult measured = measure_perplexity(model, text, {.threads = 1});
  EXPECT_NEAR(sum / static_cast<double>(one.size()), measured.mean_nll, 1e-5);
}

TEST(Score, RefusesTextsThatCannotBeScored) {
  const Model& model = test::byte_pair().target;
  EXPECT_THROW(score(model, std::vector<int32_t>{5}), Error);
  EXPECT_THROW(score(model, std::vector<int32_t>{5, 260}), Error);
  EXPECT_THROW(score(model, std::vector<int32_t>(257, 5)), Error);
  EXPECT_THROW(score(model, std::vector<int32_t>{5, 6}, {.top_logprobs = -1}), Error);
  EXPECT_THROW(score(model, std::vector<int32_t>{5, 6}, {.reading = "int8-w8a8"}), Error);
}

}  // namespace
}  // namespace logprobs_test
}  // namespace verbatim
