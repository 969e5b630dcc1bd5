#include <gtest/gtest.h>

#include "drafting/drafter_stack.h"
#include "engine/model_access.h"
#include "support/drafting.h"
#include "support/speculative_text.h"

// Drafts among a part of the vocabulary: never another byte, and as good where the text needs no more.

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

constexpr int64_t kTokens = 40;

Recipe among(int32_t vocabulary, DraftLevel level) {
  level.vocabulary = vocabulary;
  return recipe_of("fewer_tokens", {level});
}

Asking asking_at(float temperature) {
  return {.sampling = {.temperature = temperature, .seed = 7}, .tokens = kTokens};
}

class DraftsAmongFewerTokens : public testing::TestWithParam<float> {
 protected:
  const Model& model() const { return pair_.target; }

  const Pair& pair_ = default_pair({"full", "mxfp4"});
  std::vector<int32_t> prompt_ = pair_.target.encode("numbers = [3, 14, 15, 92, ");
  Asking asking_ = asking_at(GetParam());
};

INSTANTIATE_TEST_SUITE_P(, DraftsAmongFewerTokens, testing::Values(0.0f, 0.8f), [](const auto& info) {
  return info.param > 0 ? std::string("sampled") : std::string("greedy");
});

TEST_P(DraftsAmongFewerTokens, GiveThePlainText) {
  const GenerateResult plain = generate(pair_, load_recipe("plain"), prompt_, asking_);
  DraftLevel early = self_level("full", 4);
  early.layers = 6;
  for (const Recipe& recipe :
       {among(1024, self_level("mxfp4-w4a8", 8, 2, 12)), among(100, self_level("mxfp4-w4a16", 6)),
        among(1024, early), among(2000, model_level("full", 5, 3, 15))}) {
    Work work;
    expect_plain_text(pair_, recipe, prompt_, asking_, plain, work);
    EXPECT_GT(work.drafted, 0);
  }
}

TEST_P(DraftsAmongFewerTokens, SayCharactersToo) {
  std::vector<int32_t> text = prompt_;
  const GenerateResult plain = generate(pair_, load_recipe("plain"), prompt_, asking_);
  text.insert(text.end(), plain.tokens.begin(), plain.tokens.end());

  ThreadTeam team(2);
  const ModelData& data = data_of(model());
  Evaluator evaluator(data.decoder, team);
  DrafterStack drafters(among(1024, self_level("mxfp4-w4a8", 8)), evaluator, {&data.decoder, data.tokenizer},
                        {}, 128, team);
  EXPECT_EQ(drafters.network(0)->kind().head->columns, 1024);
  Sampler sampler(asking_.sampling);
  int64_t accepted = 0;
  int64_t characters = 0;
  for (size_t known = prompt_.size(); known < text.size(); known += 4) {
    Sequence sequence =
        verified({text.begin(), text.begin() + static_cast<ptrdiff_t>(known)}, evaluator, 128);
    Draft draft;
    drafters.level(0).propose(sequence, sampler, {.length = 4, .nodes = 4}, 4, draft);
    for (size_t i = 0; i < draft.nodes.size() && known + i < text.size(); ++i) {
      if (draft.nodes[i].token != text[known + i]) break;
      ++accepted;
      // Characters have the last numbers; the first 1024 tokens have single bytes alone.
      if (text[known + i] >= 1024 && data.text().piece_bytes(text[known + i], false).size() == 1)
        ++characters;
    }
  }
  EXPECT_GT(accepted, kTokens / 2);
  EXPECT_GT(characters, 5);
}

}  // namespace
}  // namespace verbatim
