#include "drafting/translating_drafter.h"

#include "kv/dense.h"
#include "support/other_vocabulary.h"
#include "text/tokenizer_support.h"

namespace verbatim {
namespace {

/// Proposes tokens that the test gives.
class Script : public Drafter {
 public:
  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override {
    EXPECT_FALSE(sequence.tokens.empty());
    EXPECT_EQ(sampler.options().temperature, 0.0f);
    EXPECT_EQ(limits.breadth, 1);
    asked = sequence.tokens;
    int32_t parent = DraftNode::kRoot;
    for (size_t i = 0; i < tokens.size() && draft.size() < std::min<int64_t>(limits.length, room); ++i) {
      parent = draft.add(tokens[i], parent, i < confidences.size() ? confidences[i] : 0.9f);
    }
    draft.unsure = unsure;
    ++stats.passes;
  }
  void observe(const Sequence&) override {}

  std::vector<Token> tokens;
  std::vector<float> confidences;
  bool unsure = false;
  std::vector<Token> asked;
};

/// Drafts in another vocabulary for sequences of the default model.
class TranslatingDrafterTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ours = load_tokenizer(
        {TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
    theirs = std::string(GetParam()) == "llama2" ? test::llama2_tokenizer() : test::reduced_tokenizer();
    auto inner = std::make_unique<Script>();
    script = inner.get();
    drafter = std::make_unique<TranslatingDrafter>(std::move(inner), theirs, ours, 1024);
  }

  /// What follows `before`, if the other model goes on with `after`.
  std::string proposed(const std::string& before, const std::string& after, int64_t room = 100) {
    sequence.tokens = ours->encode(before, {});
    script->tokens.clear();
    ContinuationEncoder(*theirs).encode(after, script->tokens);
    return propose(room);
  }
  std::string propose(int64_t room = 100) {
    const std::vector<Token> before = sequence.tokens;
    draft.clear();
    Sampler sampler(SamplingOptions{.temperature = 0.8f, .seed = 3});
    drafter->propose(sequence, sampler, limits, room, draft);
    EXPECT_EQ(sequence.tokens, before);
    EXPECT_LE(draft.size(), std::min<int64_t>(limits.length, room));
    EXPECT_TRUE(draft.distributions.empty());
    std::string text;
    for (int32_t i = 0; i < draft.size(); ++i) {
      const DraftNode& node = draft.nodes[static_cast<size_t>(i)];
      EXPECT_EQ(node.parent, i - 1);
      EXPECT_GE(node.token, 0);
      EXPECT_LT(node.token, ours->vocab_size());
      text += ours->piece_bytes(node.token, sequence.tokens.size() == 1 && i == 0);
    }
    return text;
  }

  std::shared_ptr<const Tokenizer> ours;
  std::shared_ptr<const Tokenizer> theirs;
  Script* script = nullptr;
  std::unique_ptr<TranslatingDrafter> drafter;
  Sequence sequence{{}, std::make_unique<DenseCache>(CacheShape{}, 0)};
  DraftLimits limits{.length = 32, .nodes = 32};
  Draft draft;
};

const auto vocabulary_name = [](const auto& info) { return std::string(info.param); };
INSTANTIATE_TEST_SUITE_P(Own, TranslatingDrafterTest, testing::Values("reduced"), vocabulary_name);
INSTANTIATE_TEST_SUITE_P(Public, TranslatingDrafterTest, testing::Values("llama2"), vocabulary_name);

TEST_P(TranslatingDrafterTest, ProposesTheTokensThatTheWholeTextWouldHave) {
  const std::string before = "def area(width, height):\n    return";
  const std::string after = " width * height if width else None\n";
  script->unsure = true;
  EXPECT_EQ(proposed(before, after), after);
  std::vector<Token> expected = ours->encode(before + after, {});
  expected.erase(expected.begin(), expected.begin() + static_cast<int64_t>(sequence.tokens.size()));
  std::vector<Token> found;
  for (const DraftNode& node : draft.nodes) found.push_back(node.token);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(theirs->decode(script->asked), before);
  EXPECT_EQ(drafter->stats.drafted, draft.size());
  EXPECT_EQ(drafter->stats.passes, 1);
}

TEST_P(TranslatingDrafterTest, LeavesOutTheLastTokenOfADraftThatOnlyItsLengthEnded) {
  const std::string text = proposed("The quick brown", " fox jumps over the lazy d");
  EXPECT_TRUE(std::string(" fox jumps over the lazy d").starts_with(text)) << text;
  EXPECT_LT(text.size(), std::string(" fox jumps over the lazy d").size());
  EXPECT_GE(text.size(), std::string(" fox jumps over").size());
}

TEST_P(TranslatingDrafterTest, EndsWhereTheOtherModelEnds) {
  sequence.tokens = ours->encode("The end", {});
  script->tokens = {*theirs->find("."), *theirs->eos(), *theirs->find("▁more")};
  EXPECT_EQ(propose(), ".");
  ASSERT_EQ(draft.size(), 2);
  EXPECT_EQ(draft.nodes[1].token, *ours->eos());
  script->tokens = {*theirs->eos()};
  propose();
  ASSERT_EQ(draft.size(), 1);
  EXPECT_EQ(draft.nodes[0].token, *ours->eos());
  // A token that only one of the vocabularies has: nothing is known of what follows.
  script->tokens = {*theirs->find("."), *theirs->bos()};
  EXPECT_EQ(propose(), ".");
}

TEST_P(TranslatingDrafterTest, CompletesACharacter) {
  sequence.tokens = ours->encode("na", {});
  sequence.tokens.push_back(*ours->find("<0xC3>"));
  script->unsure = true;
  script->tokens.clear();
  ContinuationEncoder(*theirs).encode("ïve idea", script->tokens);
  const std::string text = propose();
  EXPECT_TRUE(text.empty() || text == "\xAFve idea") << text;
  EXPECT_EQ(theirs->decode(script->asked), "na");
  // Nothing can be made of a draft that goes on otherwise, or ends within the character.
  script->tokens = {*theirs->find("▁other")};
  EXPECT_EQ(propose(), "");
  script->tokens = {*theirs->find("<0xC3>")};
  EXPECT_EQ(propose(), "");
}

TEST_P(TranslatingDrafterTest, BeginsATextWithoutTheSpaceThatVocabulariesPutThere) {
  sequence.tokens = {*ours->bos()};
  script->tokens = theirs->encode("Hello there, world", test::kPlainText);
  script->unsure = true;
  EXPECT_EQ(propose(), "Hello there, world");
}

TEST_P(TranslatingDrafterTest, MultipliesConfidencesOfTheTokensInAToken) {
  script->unsure = true;
  const std::string before = "import";
  sequence.tokens = ours->encode(before, {});
  script->tokens = {*theirs->find("▁"), *theirs->find("o"), *theirs->find("s")};
  script->confidences = {0.9f, 0.8f, 0.5f};
  ASSERT_EQ(propose(), " os");
  float product = 1.0f;
  for (const DraftNode& node : draft.nodes) product *= node.confidence;
  EXPECT_NEAR(product, 0.36f, 1e-6f);
}

TEST_P(TranslatingDrafterTest, ObeysTheLimits) {
  limits.length = 3;
  proposed("The quick brown", " fox jumps over the lazy dog and runs");
  EXPECT_EQ(draft.size(), 3);
  proposed("The quick brown", " fox jumps over the lazy dog and runs", 2);
  EXPECT_EQ(draft.size(), 2);
  EXPECT_EQ(proposed("The quick brown", " fox jumps over the lazy dog", 0), "");
  limits.length = 32;
  limits.threshold = 0.5f;
  script->confidences = {0.9f, 0.1f};
  proposed("The quick brown", " fox jumps over");
  EXPECT_TRUE(draft.unsure);
  const int64_t size = draft.size();
  EXPECT_LT(draft.nodes.back().confidence, 0.5f);
  limits.drop_unsure = true;
  proposed("The quick brown", " fox jumps over");
  EXPECT_EQ(draft.size(), size - 1);
}

TEST_P(TranslatingDrafterTest, BearsAnyTokens) {
  std::mt19937 random(11);
  const auto any = [&](const Tokenizer& tokenizer) {
    const auto bound = static_cast<uint32_t>(tokenizer.vocab_size() + 100);
    return static_cast<Token>(random() % (random() % 2 == 0 ? 259 : bound));
  };
  int64_t drafted = 0;
  for (int i = 0; i < 3000; ++i) {
    // Real text, broken text and both, on either side.
    sequence.tokens.clear();
    if (random() % 2 == 0) sequence.tokens = ours->encode(test::random_line(random), {});
    for (auto count = random() % 4; count > 0; --count) {
      Token token = any(*ours);
      sequence.tokens.push_back(token);
    }
    script->tokens.clear();
    if (random() % 2 == 0) script->tokens = theirs->encode(test::random_line(random), test::kPlainText);
    for (auto count = random() % 4; count > 0; --count) script->tokens.push_back(any(*theirs));
    script->unsure = random() % 2 == 0;
    propose(static_cast<int64_t>(random() % 20));
    drafted += draft.size();
  }
  EXPECT_GT(drafted, 3000);
}

}  // namespace
}  // namespace verbatim
