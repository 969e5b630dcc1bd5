#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kv/dense.h"
#include "speculation/speculator.h"
#include "support/drafting.h"
#include "support/test_data.h"
#include "support/test_recipes.h"

namespace verbatim {
namespace speculator_distribution_test {
namespace {

using test::Tokens;

constexpr int32_t kVocabulary = 6;
constexpr int kTokens = 4;

/// Whole generations of a tiny model, whose every text of kTokens tokens has a known probability.
class SpeculatedDistribution : public testing::Test {
 protected:
  void SetUp() override { TOO_LONG_FOR_SANITIZERS(); }
  void generate(const Recipe& recipe, SamplingOptions sampling, uint64_t seeds,
                const std::function<void(const Tokens&, const Stats&)>& take) {
    const TextModel model{&target_, test::any_tokenizer()};
    const TextModel draft{&other_, test::any_tokenizer()};
    auto drafters = std::make_unique<DrafterStack>(recipe, evaluator_, model, draft, 32, team_);
    Speculator speculator(recipe, std::move(drafters), evaluator_);
    Sequence sequence{{}, std::make_unique<DenseCache>(target_.cache_shape(), 32)};
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      sampling.seed = seed;
      speculator.begin(sampling);
      sequence.tokens = prompt_;
      // The same prompt again: what the cache holds of it still counts.
      sequence.cache->set_length(seed == 0 ? 0 : static_cast<int64_t>(prompt_.size()) - 1);
      Stats stats;
      speculator.prefill(sequence, 64, stats);
      const size_t end = prompt_.size() + kTokens;
      while (sequence.tokens.size() < end) {
        speculator.step(sequence, static_cast<int64_t>(end - sequence.tokens.size()), stats);
      }
      speculator.end(stats);
      ASSERT_EQ(sequence.tokens.size(), end);
      take({sequence.tokens.begin() + static_cast<ptrdiff_t>(prompt_.size()), sequence.tokens.end()}, stats);
    }
  }

  /// The probability of every text, the last token running fastest.
  std::vector<double> expected(const SamplingOptions& sampling) {
    std::vector<double> of_texts = {1.0};
    std::vector<Tokens> texts = {{}};
    Sampler sampler(sampling);
    std::vector<float> next;
    for (int i = 0; i < kTokens; ++i) {
      std::vector<double> of_longer;
      std::vector<Tokens> longer;
      for (size_t t = 0; t < texts.size(); ++t) {
        Tokens tokens = prompt_;
        tokens.insert(tokens.end(), texts[t].begin(), texts[t].end());
        const std::vector<float> logits = test::all_logits(target_, tokens, 64, Reading::kFull, team_);
        EXPECT_TRUE(sampler.distribution(std::span(logits).last(kVocabulary), tokens, next));
        for (int32_t token = 0; token < kVocabulary; ++token) {
          of_longer.push_back(of_texts[t] * static_cast<double>(next[static_cast<size_t>(token)]));
          longer.push_back(texts[t]);
          longer.back().push_back(token);
        }
      }
      of_texts = std::move(of_longer);
      texts = std::move(longer);
    }
    return of_texts;
  }

  struct Fit {
    double deviations;  ///< by how many standard deviations chi-square is above what chance makes it
    int64_t drafted;
    int64_t accepted;
  };
  /// Texts drawn under a recipe against their true probabilities, by chi-square (its cube root is all but
  /// normal: Wilson and Hilferty). Texts too rare to count alone count together.
  Fit fit(const Recipe& recipe, const SamplingOptions& sampling, uint64_t seeds) {
    const std::vector<double> probabilities = expected(sampling);
    std::vector<double> counts(probabilities.size());
    Fit result{};
    generate(recipe, sampling, seeds, [&](const Tokens& text, const Stats& stats) {
      size_t index = 0;
      for (const int32_t token : text) index = index * kVocabulary + static_cast<size_t>(token);
      counts[index] += 1.0;
      result.drafted += stats.drafted;
      result.accepted += stats.accepted;
    });
    double chi_square = 0.0;
    double bins = 0.0;
    double rare_count = 0.0;
    double rare = 0.0;
    const auto add = [&](double count, double mean) {
      chi_square += (count - mean) * (count - mean) / mean;
      bins += 1.0;
    };
    for (size_t i = 0; i < counts.size(); ++i) {
      const double mean = probabilities[i] * static_cast<double>(seeds);
      if (mean == 0.0) {
        EXPECT_EQ(counts[i], 0.0) << "a text that cannot be";
      }
      if (mean < 8.0) {
        rare += mean;
        rare_count += counts[i];
      } else {
        add(counts[i], mean);
      }
    }
    if (rare > 8.0) add(rare_count, rare);
    const double freedom = bins - 1.0;
    EXPECT_GT(freedom, 20.0);
    const double spread = 2.0 / (9.0 * freedom);
    result.deviations = (std::cbrt(chi_square / freedom) - (1.0 - spread)) / std::sqrt(spread);
    return result;
  }

  ThreadTeam team_{1};
  Decoder target_ = test::tiny_decoder(test::small_vocabulary(kVocabulary, 1));
  Decoder other_ = test::tiny_decoder(test::small_vocabulary(kVocabulary, 2));
  Evaluator evaluator_{target_, team_};
  Tokens prompt_ = {1, 4, 2, 5, 1, 4, 3, 3, 0, 1, 4};
};

std::vector<Recipe> rejecting() {
  DraftLevel early = test::self_level("full", 4);
  early.layers = 1;
  DraftLevel few = test::model_level("full", 4);
  few.vocabulary = 4;
  std::vector<Recipe> recipes = {
      test::recipe_of("self", {test::self_level("mxfp4-w4a8", 4)}),
      test::recipe_of("early exit", {early}),
      test::recipe_of("model", {test::model_level("full", 4)}),
      test::recipe_of("model of fewer tokens", {few}),
      test::recipe_of("n-grams", {test::ngram_level(4)}),
      test::recipe_of("early exit with n-grams", {early, test::ngram_level(2, 2, 4)}),
      test::recipe_of("model with n-grams", {test::model_level("mxfp4-w4a8", 4), test::ngram_level(3)}),
  };
  early.threshold = 0.4f;
  recipes.push_back(test::recipe_of("early exit that stops when unsure", {early}));
  for (Recipe& recipe : recipes) recipe.acceptance = Recipe::Acceptance::kRejection;
  return recipes;
}

TEST_F(SpeculatedDistribution, IsThatOfPlainSamplingUnderTheRejectionRule) {
  const std::vector<SamplingOptions> settings = {
      {.temperature = 0.5f},
      {.repetition_penalty = 1.2f, .temperature = 0.8f, .top_k = 4},
      {.temperature = 0.7f, .top_p = 0.8f},
  };
  for (const Recipe& recipe : rejecting()) {
    for (size_t s = 0; s < settings.size(); ++s) {
      const Fit found = fit(recipe, settings[s], s == 0 ? 6000 : 2000);
      EXPECT_LT(found.deviations, 3.5) << recipe.name << ", setting " << s;
      EXPECT_GT(found.deviations, -3.5) << recipe.name << ", setting " << s;
      EXPECT_GT(found.accepted, 0) << recipe.name;
      EXPECT_LT(found.accepted, found.drafted)
          << recipe.name << ": nothing was rejected, which shows nothing";
    }
  }
}

// The comparison must be able to fail: plain sampling passes it, a rule that keeps too much does not.
TEST_F(SpeculatedDistribution, IsFoundToBeAnotherWhereTheRuleIsLossy) {
  const SamplingOptions sampling{.temperature = 0.5f};
  Recipe recipe = test::recipe_of("early exit", rejecting()[1].levels);
  EXPECT_LT(std::abs(fit(test::recipe_of("plain", {}), sampling, 6000).deviations), 3.5);
  EXPECT_LT(std::abs(fit(recipe, sampling, 6000).deviations), 3.5) << "the exact rule";
  recipe.acceptance = Recipe::Acceptance::kBild;
  recipe.rollback = 1.5f;
  EXPECT_GT(fit(recipe, sampling, 6000).deviations, 6.0);
}

TEST_F(SpeculatedDistribution, IsOneTextAtTemperatureZero) {
  Tokens plain;
  generate(test::recipe_of("plain", {}), {}, 1, [&](const Tokens& text, const Stats&) { plain = text; });
  for (const Recipe& recipe : rejecting()) {
    generate(recipe, {}, 5, [&](const Tokens& text, const Stats&) { EXPECT_EQ(text, plain) << recipe.name; });
  }
}

// With an own cache, shared caches and n-grams alike: after 200 generations the same seed says the same.
TEST_F(SpeculatedDistribution, TheExactRuleGivesEverySeedItsText) {
  std::vector<Tokens> plain;
  const SamplingOptions sampling{.temperature = 0.9f};
  generate(test::recipe_of("plain", {}), sampling, 200,
           [&](const Tokens& text, const Stats&) { plain.push_back(text); });
  for (Recipe recipe : rejecting()) {
    recipe.acceptance = Recipe::Acceptance::kExact;
    size_t next = 0;
    generate(recipe, sampling, 200, [&](const Tokens& text, const Stats& stats) {
      EXPECT_EQ(text, plain[next++]) << recipe.name;
      test::expect_consistent(
          [&] {
            Stats counted = stats;
            counted.generated_tokens = kTokens;
            return counted;
          }(),
          recipe);
    });
  }
}

// A draft model that knows nothing, not even a number, costs its time alone.
TEST_F(SpeculatedDistribution, ADraftModelOfNonsenseChangesNothing) {
  test::TinyModelOptions broken = test::small_vocabulary(kVocabulary, 3);
  broken.nan_weight = true;
  const SamplingOptions sampling{.temperature = 0.9f};
  std::vector<Tokens> plain;
  generate(test::recipe_of("plain", {}), sampling, 20,
           [&](const Tokens& text, const Stats&) { plain.push_back(text); });
  other_ = test::tiny_decoder(broken);
  for (const int32_t breadth : {1, 3}) {
    for (const bool levels : {false, true}) {
      Recipe recipe = test::recipe_of("nonsense", {test::model_level("full", 3, breadth, 6)});
      if (levels) recipe.levels.insert(recipe.levels.begin(), test::self_level("mxfp4-w4a8", 4));
      size_t next = 0;
      generate(recipe, sampling, 20, [&](const Tokens& text, const Stats& stats) {
        EXPECT_EQ(text, plain[next++]);
        if (!levels) {
          EXPECT_EQ(stats.drafted, 0);
        }
      });
    }
  }
}

/// A small model writes and the large one corrects, for a whole text.
class Bild : public SpeculatedDistribution {
 protected:
  Stats write(float rollback, float threshold, Tokens& text, const SamplingOptions& sampling = {}) {
    DraftLevel level = test::model_level("full", 4);
    level.threshold = threshold;
    Recipe recipe = test::recipe_of("bild", {level});
    recipe.acceptance = Recipe::Acceptance::kBild;
    recipe.rollback = rollback;
    Stats stats;
    generate(recipe, sampling, 1, [&](const Tokens& tokens, const Stats& counted) {
      text = tokens;
      stats = counted;
    });
    return stats;
  }
  Tokens plain(const SamplingOptions& sampling = {}) {
    Tokens text;
    generate(test::recipe_of("plain", {}), sampling, 1,
             [&](const Tokens& tokens, const Stats&) { text = tokens; });
    return text;
  }

  /// Greedy, from the whole distribution, and from the nucleus.
  const std::vector<SamplingOptions> settings_ = {
      {}, {.temperature = 0.8f}, {.temperature = 0.8f, .top_p = 0.9f}};
};

TEST_F(Bild, WithoutToleranceTheTextIsTheModels) {
  for (const SamplingOptions& sampling : settings_) {
    Tokens text;
    const Stats stats = write(0.0f, 0.0f, text, sampling);
    EXPECT_EQ(text, plain(sampling)) << sampling;
    EXPECT_EQ(stats.fallbacks, 0);
  }
}

TEST_F(Bild, WithEndlessToleranceNothingIsTakenBack) {
  for (const SamplingOptions& sampling : settings_) {
    Tokens text;
    const Stats stats = write(1e6f, 0.0f, text, sampling);
    EXPECT_EQ(stats.rollbacks, 0);
    EXPECT_EQ(stats.fallbacks, 0);
    EXPECT_GT(stats.drafted, 0);
    EXPECT_EQ(stats.accepted, stats.drafted);
  }
}

// A small model that is never sure leaves every token to the large one.
TEST_F(Bild, FallsBackWhereTheSmallModelIsUnsure) {
  Tokens text;
  const Stats stats = write(1e6f, 1.0f, text);
  EXPECT_EQ(text, plain());
  EXPECT_EQ(stats.drafted, 0);
  EXPECT_EQ(stats.accepted, 0);
  EXPECT_EQ(stats.target_passes, kTokens - 1);
  // In the last step there is room for one token, and nobody is asked for a draft.
  EXPECT_EQ(stats.fallbacks, kTokens - 2);
  EXPECT_EQ(stats.rollbacks, 0);
}

}  // namespace
}  // namespace speculator_distribution_test
}  // namespace verbatim
