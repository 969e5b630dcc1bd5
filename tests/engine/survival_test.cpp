#include "support/speculative_text.h"

// What may happen to a generation in the middle of a draft. Whatever drafts, it must end as plain decoding
// would, and leave a session that goes on as if there had been no drafts.

namespace verbatim {
namespace survival_test {
namespace {

using namespace test;  // NOLINT: the support of this very test

const Recipe kPlainRecipe = load_recipe("plain");

/// A model and the recipes that its store serves, plain decoding first.
struct Setting {
  Pair pair;
  std::vector<Recipe> recipes;
};

/// Every kind of drafter that needs no store of its own.
std::vector<Recipe> all_kinds(const Model& target) {
  std::vector<Recipe> recipes = made_recipes(target.vocab_size() * 7 / 8);
  recipes.insert(recipes.begin(), kPlainRecipe);
  for (const char* name :
       {"ml-specqd", "ml-specqd-2", "draft-model", "ngram", "early-exit", "self-int4", "auto"}) {
    recipes.push_back(load_recipe(name));
  }
  return recipes;
}

const Setting& small_setting() {
  static const Setting setting{small_pair(), all_kinds(small_pair().target)};
  return setting;
}

/// A trained model that says where a text ends, and drafts for itself.
Setting trained(const std::vector<std::string>& formats, std::vector<Recipe> recipes) {
  measure_apart();
  const Model model = load_model(draft_model(), formats);
  return {{model, model}, recipes.empty() ? all_kinds(model) : std::move(recipes)};
}

const Setting& trained_setting() {
  static const Setting setting = trained({"full", "mxfp4", "int4"}, {});
  return setting;
}

/// The stores that draft with some of the bits that verify.
const Setting& mxbf16_setting() {
  static const Setting setting =
      trained({"mxbf16"}, {kPlainRecipe, load_recipe("nested"), load_recipe("auto")});
  return setting;
}

const Setting& bsfp_setting() {
  static const Setting setting = trained({"bsfp"}, {kPlainRecipe, load_recipe("speq")});
  return setting;
}

const Setting& setting_of(const std::string& name) {
  if (name == "small") return small_setting();
  if (name == "trained") return trained_setting();
  return name == "mxbf16" ? mxbf16_setting() : bsfp_setting();
}

class Survival : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "mxbf16" || GetParam() == "bsfp") TOO_LONG_FOR_SANITIZERS();
    setting_ = &setting_of(GetParam());
  }

  const std::vector<Recipe>& recipes() const { return setting_->recipes; }
  Session new_session(int64_t capacity = 0, int32_t threads = 1) const {
    Session session(setting_->pair.target, capacity, threads);
    session.set_draft_model(setting_->pair.draft);
    return session;
  }
  std::vector<int32_t> encode(const char* text) const { return setting_->pair.target.encode(text); }
  std::vector<int32_t> story() const { return encode("Once upon a time, there was a little cat. The cat"); }
  static GenerateOptions options(int64_t tokens, float temperature = 0.0f) {
    GenerateOptions options;
    options.max_tokens = tokens;
    options.ignore_eos = true;
    options.sampling = {.temperature = temperature, .seed = 5};
    return options;
  }
  GenerateResult plain(const std::vector<int32_t>& prompt, const GenerateOptions& options) const {
    return new_session().generate(prompt, options, kPlainRecipe);
  }

  /// The same of a call with every recipe as with plain decoding: text, tokens, reason, and what a session
  /// says after it.
  void expect_alike(const std::vector<int32_t>& prompt, const GenerateOptions& options, bool whole = false,
                    int64_t capacity = 0) {
    std::optional<GenerateResult> expected;
    std::vector<int32_t> expected_more;
    for (const Recipe& recipe : recipes()) {
      SCOPED_TRACE(recipe.name);
      Session session = new_session(capacity);
      std::string streamed;
      const GenerateResult result =
          session.generate(prompt, options, recipe, [&](std::string_view piece) { streamed += piece; });
      EXPECT_EQ(streamed, result.text);
      expect_consistent(result.stats, recipe, whole);
      if (!expected) expected = result;
      ASSERT_EQ(result.tokens, expected->tokens);
      EXPECT_EQ(result.text, expected->text);
      EXPECT_EQ(result.stats.finish, expected->stats.finish);
      EXPECT_EQ(result.stats.generated_tokens, static_cast<int64_t>(result.tokens.size()));
      if (result.stats.generated_tokens < 1 + result.stats.accepted + result.stats.target_passes) {
        ++ended_in_drafts_;
      }
      std::vector<int32_t> all = prompt;
      all.insert(all.end(), result.tokens.begin(), result.tokens.end());
      EXPECT_EQ(session.tokens(), all);
      if (capacity > 0) continue;
      GenerateOptions more = Survival::options(12, 0.8f);
      more.sampling.repetition_penalty = 1.1f;
      const std::vector<int32_t> tokens = session.generate({}, more, recipe).tokens;
      if (expected_more.empty()) expected_more = tokens;
      ASSERT_EQ(tokens, expected_more);
    }
  }

  const Setting* setting_ = nullptr;
  size_t ended_in_drafts_ = 0;  // generations that ended before the last of the tokens that were verified
};

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

INSTANTIATE_TEST_SUITE_P(, Survival, testing::Values("small", "mxbf16", "bsfp"), name_of);

TEST_P(Survival, AnyNumberOfTokensEndsInTheMiddleOfADraft) {
  for (const int64_t tokens : {1, 2, 3, 7}) expect_alike(story(), options(tokens, 0.7f), true);
}

TEST_P(Survival, AStopStringInADraft) {
  for (const float temperature : {0.0f, 0.9f}) {
    GenerateOptions asked = options(40, temperature);
    const std::string text = plain(story(), asked).text;
    for (const size_t at : {5, 18}) {
      for (const size_t length : {1, 6}) {
        asked.stop = {"not in the text", text.substr(at, length)};
        expect_alike(story(), asked);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GE(ended_in_drafts_, recipes().size());
}

TEST_P(Survival, EndOfTextInADraft) {
  for (const float temperature : {0.0f, 0.9f}) {
    GenerateOptions asked = options(40, temperature);
    const std::vector<int32_t> tokens = plain(story(), asked).tokens;
    for (const size_t at : {1, 9, 23}) {
      asked.stop_tokens = {tokens[at]};
      expect_alike(story(), asked);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(ended_in_drafts_, recipes().size());
}

/// Texts that the model itself ends.
class SurvivalOfTheEnd : public Survival {};

INSTANTIATE_TEST_SUITE_P(, SurvivalOfTheEnd, testing::Values("trained", "mxbf16", "bsfp"), name_of);

// The token that ends a text is drafted and kept, and with it the one that verification finds after it.
TEST_P(SurvivalOfTheEnd, TheModelsOwnEndOfTextInADraft) {
  const std::string answer =
      "Question: Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in "
      "May. How many clips did Natalia sell altogether?\nAnswer: Natalia sold 48/2 = 24 clips in May.\n"
      "Natalia sold 48+24 = 72 clips altogether in April and May.\n#### 7";
  const std::vector<std::pair<float, size_t>> asked_for = {{0.0f, 0}, {0.7f, 2}};
  for (const auto& [temperature, left_out] : asked_for) {
    GenerateOptions asked = options(40, temperature);
    asked.ignore_eos = false;
    const auto prompt = encode(answer.substr(0, answer.size() - left_out).c_str());
    ASSERT_EQ(plain(prompt, asked).stats.finish, FinishReason::kEndOfSequence);
    expect_alike(prompt, asked);
    if (HasFatalFailure()) return;
  }
  // Not in those of n-grams, which cannot foresee it, nor where the planner does without drafts.
  EXPECT_GE(ended_in_drafts_, asked_for.size() * (recipes().size() - 1) / 2);
}

TEST_P(Survival, TheContextsEndInADraft) {
  const auto prompt = static_cast<int64_t>(story().size());
  for (const int64_t room : {1, 2, 3, 6, 20}) {
    expect_alike(story(), options(100, 0.7f), true, prompt + room);
    if (HasFatalFailure()) return;
  }
  // The whole context of the model, the tokens before it evaluated in one go.
  const int64_t context = setting_->pair.target.context();
  std::vector<int32_t> long_prompt;
  while (static_cast<int64_t>(long_prompt.size()) < context - 11) {
    long_prompt.push_back(story()[long_prompt.size() % story().size()]);
  }
  expect_alike(long_prompt, options(100), true, context);
}

TEST_P(Survival, CancellingBetweenStepsAndGoingOn) {
  for (const float temperature : {0.0f, 0.9f}) {
    const std::vector<int32_t> expected = plain(story(), options(40, temperature)).tokens;
    for (const Recipe& recipe : recipes()) {
      for (const int stop_after : {0, 1, 2, 4}) {
        Session session = new_session();
        GenerateOptions asked = options(40, temperature);
        int calls = 0;
        asked.cancelled = [&] { return ++calls > stop_after; };
        GenerateResult first = session.generate(story(), asked, recipe);
        if (first.stats.finish == FinishReason::kCancelled) {
          expect_consistent(first.stats, recipe);
          const auto said = static_cast<int64_t>(first.tokens.size());
          const GenerateResult rest = session.generate({}, options(40 - said, temperature), recipe);
          first.tokens.insert(first.tokens.end(), rest.tokens.begin(), rest.tokens.end());
        }
        ASSERT_EQ(first.tokens, expected) << recipe.name << ", cancelled after " << stop_after << " calls";
      }
    }
  }
}

TEST_P(Survival, CancellingInTheMiddleOfAStepAndGoingOn) {
  for (const float temperature : {0.0f, 0.9f}) {
    const GenerateResult expected = plain(story(), options(40, temperature));
    for (const Recipe& recipe : recipes()) {
      for (const int stop_after : {1, 2, 5, 9}) {
        Session session = new_session();
        int pieces = 0;
        std::string heard;
        GenerateOptions asked = options(40, temperature);
        asked.cancelled = [&] { return pieces >= stop_after; };
        GenerateResult first = session.generate(story(), asked, recipe, [&](std::string_view piece) {
          heard += piece;
          ++pieces;
        });
        ASSERT_EQ(first.stats.finish, FinishReason::kCancelled) << recipe.name;
        EXPECT_EQ(pieces, stop_after) << recipe.name;
        EXPECT_TRUE(expected.text.starts_with(heard)) << recipe.name;
        expect_consistent(first.stats, recipe, false);
        const auto said = static_cast<int64_t>(first.tokens.size());
        const GenerateResult rest = session.generate({}, options(40 - said, temperature), recipe);
        first.tokens.insert(first.tokens.end(), rest.tokens.begin(), rest.tokens.end());
        ASSERT_EQ(first.tokens, expected.tokens) << recipe.name << ", cancelled at piece " << stop_after;
      }
    }
  }
}

TEST_P(Survival, CancellingAPromptAndGoingOn) {
  const std::vector<int32_t> expected = plain(story(), options(20)).tokens;
  for (const Recipe& recipe : recipes()) {
    Session session = new_session();
    GenerateOptions asked = options(20);
    asked.prefill_chunk = 4;
    int calls = 0;
    asked.cancelled = [&] { return ++calls > 2; };
    EXPECT_TRUE(session.generate(story(), asked, recipe).tokens.empty());
    EXPECT_EQ(session.generate({}, options(20), recipe).tokens, expected) << recipe.name;
  }
}

// Drafters keep caches and counts of their own; none of that may outlive the tokens it came from.
TEST_P(Survival, ASequenceCutShortAndAnotherPrompt) {
  const std::vector<int32_t> other = encode(" big dog. The dog and the bird");
  const GenerateOptions asked = options(24, 0.7f);
  for (const Recipe& recipe : recipes()) {
    Session session = new_session();
    for (const size_t left : {40, 12, 5, 1, 0, 3}) {
      session.generate(story(), asked, recipe);
      session.truncate(static_cast<int64_t>(left));
      ASSERT_LE(session.tokens().size(), left);
      std::vector<int32_t> all = session.tokens();
      all.insert(all.end(), other.begin(), other.end());
      ASSERT_EQ(session.generate(other, asked, recipe).tokens, plain(all, asked).tokens)
          << recipe.name << ", " << left << " tokens left";
      session.truncate(0);
    }
  }
}

TEST_P(Survival, TheSameTextOverAndOver) {
  const GenerateOptions asked = options(30, 0.7f);
  const std::vector<int32_t> expected = plain(story(), asked).tokens;
  for (const Recipe& recipe : recipes()) {
    Session session = new_session();
    ASSERT_EQ(session.generate(story(), asked, recipe).tokens, expected) << recipe.name;
    for (int again = 0; again < 3; ++again) {
      session.truncate(static_cast<int64_t>(story().size()) + again * 4);
      const GenerateResult rest = session.generate({}, options(30 - again * 4, 0.7f), recipe);
      ASSERT_EQ(rest.tokens, std::vector<int32_t>(expected.begin() + again * 4, expected.end()))
          << recipe.name;
      expect_consistent(rest.stats, recipe);
    }
  }
}

TEST_P(Survival, AnotherRecipeAndOtherSamplingInEveryCall) {
  const std::vector<SamplingOptions> sampling = various_sampling();
  const std::vector<int32_t> between = encode(" Then Tom said:");
  for (size_t shift = 0; shift < 3; ++shift) {
    Session session = new_session();
    Session reference = new_session();
    for (size_t i = 0; i < recipes().size(); ++i) {
      const Recipe& recipe = recipes()[(i * 7 + shift) % recipes().size()];
      GenerateOptions asked = options(9 + static_cast<int64_t>(i % 3));
      asked.sampling = sampling[(i + shift) % sampling.size()];
      const std::vector<int32_t> prompt = i == 0 ? story() : i % 4 == 0 ? between : std::vector<int32_t>{};
      const GenerateResult expected = reference.generate(prompt, asked, kPlainRecipe);
      const GenerateResult result = session.generate(prompt, asked, recipe);
      ASSERT_EQ(result.tokens, expected.tokens) << recipe.name << ", call " << i << ": " << asked.sampling;
      expect_consistent(result.stats, recipe);
    }
    EXPECT_EQ(session.tokens(), reference.tokens());
  }
}

TEST_P(Survival, SettingsChangeBetweenCallsOfOneRecipe) {
  for (const Recipe& recipe : recipes()) {
    Session session = new_session();
    Session reference = new_session();
    for (const SamplingOptions& sampling : various_sampling()) {
      GenerateOptions asked = options(8);
      asked.sampling = sampling;
      const std::vector<int32_t> prompt = session.tokens().empty() ? story() : std::vector<int32_t>{};
      ASSERT_EQ(session.generate(prompt, asked, recipe).tokens,
                reference.generate(prompt, asked, kPlainRecipe).tokens)
          << recipe.name << ": " << sampling;
    }
  }
}

class SurvivalOfDraftModels : public Survival {};

INSTANTIATE_TEST_SUITE_P(, SurvivalOfDraftModels, testing::Values("small"), name_of);

TEST_P(SurvivalOfDraftModels, AnotherDraftModelBetweenCalls) {
  const GenerateOptions asked = options(15);
  Session reference = new_session();
  Session session = new_session();
  const std::vector<const Model*> drafts = {&small_pair().draft, &small_pair().target};
  const std::vector<Recipe> with_model = {load_recipe("draft-model"), load_recipe("ml-specqd-2")};
  for (size_t i = 0; i < 6; ++i) {
    const std::vector<int32_t> prompt = i == 0 ? story() : std::vector<int32_t>{};
    session.set_draft_model(*drafts[i % 2]);
    ASSERT_EQ(session.generate(prompt, asked, with_model[i / 3]).tokens,
              reference.generate(prompt, asked, kPlainRecipe).tokens);
  }
}

// An error in the middle of it all leaves the sequence as it was.
TEST_P(Survival, ACallThatFailsLeavesTheSessionAsItWas) {
  Session session = new_session();
  Session reference = new_session();
  session.generate(story(), options(10), load_recipe("draft-model"));
  reference.generate(story(), options(10), kPlainRecipe);
  const std::vector<int32_t> before = session.tokens();
  for (const Recipe& recipe : recipes()) {
    int calls = 0;
    EXPECT_THROW(session.generate(encode(" A bird"), options(30), recipe,
                                  [&](std::string_view) {
                                    if (++calls == 5) throw std::runtime_error("the listener is gone");
                                  }),
                 std::runtime_error);
    ASSERT_EQ(session.tokens(), before) << recipe.name;
  }
  EXPECT_EQ(session.generate({}, options(10), load_recipe("draft-model")).tokens,
            reference.generate({}, options(10), kPlainRecipe).tokens);
}

}  // namespace
}  // namespace survival_test
}  // namespace verbatim
