#include "engine/pass_batcher.h"

#include <gtest/gtest.h>

#include <latch>
#include <numeric>
#include <thread>

#include "support/drafting.h"

namespace verbatim {
namespace {

// Planners and trials learn from the times of passes. A prompt's rows want no logits, so they take less than
// rows of drafts, and a pass with a prompt, even a short one, must not pass for one over many drafted rows.
TEST(PassBatcher, TellsPassesWithRowsOfPromptsFromOthers) {
  const Decoder decoder = test::tiny_decoder(test::small_vocabulary(40));
  ThreadTeam team(1);
  PassBatcher batcher(
      team, {}, [] { return false; }, [] {});
  PassBatcher::Member member;
  Evaluator evaluator(batcher.runner(member, decoder));
  const PassKind kind(Reading::kFull);
  // Rows that are evaluated after so many others, and those of them that want logits.
  const auto prompts = [&](int64_t context, int64_t rows, int64_t with_logits) {
    DenseCache cache(decoder.cache_shape(), 128);
    std::vector<int32_t> tokens(static_cast<size_t>(context + rows));
    std::iota(tokens.begin(), tokens.end(), 0);
    for (int32_t& token : tokens) token %= 40;
    evaluator.evaluate({tokens.data(), static_cast<size_t>(context)}, 0, 0, kind, cache);
    evaluator.evaluate(tokens, context, with_logits, kind, cache);
    EXPECT_EQ(evaluator.runner().last_pass().rows, rows);
    return evaluator.runner().last_pass().prompts;
  };
  EXPECT_FALSE(prompts(10, 1, 1));
  EXPECT_FALSE(prompts(10, 24, 24));
  EXPECT_FALSE(prompts(10, 3, 1));  // tokens that were just accepted
  EXPECT_TRUE(prompts(10, 24, 1));
  EXPECT_TRUE(prompts(10, 64, 1));
  EXPECT_TRUE(prompts(10, 24, 0));
}

// Sequences of plain recipes do as well with drafts as without, as they have none. That is no reason for the
// next ones, which would draft, not to.
TEST(PassBatcher, LearnsNothingOfDraftsFromSequencesThatNeverAsk) {
  constexpr int64_t kPasses = 400;
  const Decoder decoder = test::tiny_decoder(test::small_vocabulary(40));
  ThreadTeam team(1);
  PassBatcher batcher(
      team, {}, [] { return false; }, [] {});
  std::latch attached(2);
  std::latch asked(2);
  const auto decode = [&](bool* gains) {
    const std::vector<int32_t> tokens(kPasses, 7);
    PassBatcher::Member member;
    member.tokens = &tokens;
    Evaluator evaluator(batcher.runner(member, decoder));
    const PassKind kind(Reading::kFull);
    DenseCache cache(decoder.cache_shape(), kPasses);
    batcher.attach(member);
    attached.arrive_and_wait();
    for (int64_t i = 0; i < kPasses; ++i) {
      evaluator.evaluate({tokens.data(), static_cast<size_t>(i + 1)}, i, 1, kind, cache);
      cache.set_length(i + 1);
    }
    *gains = evaluator.runner().gains_by_drafts();
    asked.arrive_and_wait();
    batcher.detach(member);
  };
  bool gains[2] = {};
  std::thread other(decode, &gains[1]);
  decode(&gains[0]);
  other.join();
  EXPECT_TRUE(gains[0]);
  EXPECT_TRUE(gains[1]);
}

}  // namespace
}  // namespace verbatim
