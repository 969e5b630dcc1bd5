#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "verbatim/generate.h"

namespace verbatim::test {

/// A level that drafts with another reading of the model.
DraftLevel self_level(const std::string& reading, int32_t length, int32_t breadth = 1, int32_t nodes = 0);
/// A level that drafts with another model.
DraftLevel model_level(const std::string& reading, int32_t length, int32_t breadth = 1, int32_t nodes = 0);
/// A level that drafts with n-grams.
DraftLevel ngram_level(int32_t length, int32_t breadth = 1, int32_t nodes = 0);

/// A lossless recipe of these levels, the model's own drafter first.
Recipe recipe_of(const std::string& name, std::vector<DraftLevel> levels);

/// The built-in recipes that draft and whose text is that of the model's own weights.
std::vector<Recipe> lossless_recipes();

/// A recipe's name as the name of a test, which has no dashes.
std::string test_name(std::string recipe);

/// Recipes that go further than those: every kind of drafter with every kind of drafter inside it, trees on
/// all levels, reduced vocabularies. They need a model in "full", "mxfp4" and "int4", and a draft model in
/// "full" and "mxfp4". `vocabulary` is the number of tokens for the levels that draft with fewer.
std::vector<Recipe> made_recipes(int32_t vocabulary);

/// Sampling settings that differ in all they can, the first of them greedy.
std::vector<SamplingOptions> various_sampling();

/// Expects the statistics of a generation to agree with each other and with the recipe. `whole`: it ended
/// where a step did, so that every token verified was taken.
void expect_consistent(const Stats& stats, const Recipe& recipe, bool whole = true);

}  // namespace verbatim::test

namespace verbatim {
/// For messages of tests.
inline std::ostream& operator<<(std::ostream& out, const SamplingOptions& s) {
  return out << "temperature " << s.temperature << ", top-k " << s.top_k << ", top-p " << s.top_p
             << ", min-p " << s.min_p << ", penalty " << s.repetition_penalty << ", presence "
             << s.presence_penalty << ", frequency " << s.frequency_penalty << ", seed " << s.seed;
}
}  // namespace verbatim
