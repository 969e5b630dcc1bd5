#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/test_data.h"
#include "support/test_recipes.h"

// The promise for recipes: whatever drafts, the text is that of plain decoding.

namespace verbatim::test {

/// Keeps what planners measure out of the user's folders, for as long as the program runs.
inline void measure_apart() {
  static const TemporaryFolder folder;
  setenv("VERBATIM_CACHE_DIR", folder.path().c_str(), 1);
}

/// A target, a draft model, and what each of them was loaded in.
struct Pair {
  Model target;
  Model draft;
};

/// The draft model, 1.3 million parameters, which drafts for itself in other formats.
inline const Pair& small_pair() {
  static const Pair pair = [] {
    measure_apart();
    return Pair{load_model(draft_model(), {"full", "mxfp4", "int4"}),
                load_model(draft_model(), {"full", "mxfp4"})};
  }();
  return pair;
}

/// The default model in the formats of a recipe, and the draft model.
inline const Pair& default_pair(const std::vector<std::string>& formats) {
  static std::map<std::vector<std::string>, Pair> pairs;
  const auto found = pairs.find(formats);
  if (found != pairs.end()) return found->second;
  measure_apart();
  static const Model draft = load_model(draft_model(), {"full", "mxfp4"});
  return pairs.emplace(formats, Pair{load_model(default_model(), formats), draft}).first->second;
}

/// How a text is asked for; none of it may change the text but the sampling.
struct Asking {
  SamplingOptions sampling;
  int64_t tokens = 24;
  int32_t threads = 1;
  int64_t prefill_chunk = 512;
};

inline std::ostream& operator<<(std::ostream& out, const Asking& asking) {
  return out << asking.sampling << ", " << asking.tokens << " tokens, " << asking.threads
             << " threads, prefill chunk " << asking.prefill_chunk;
}

inline GenerateOptions options_of(const Asking& asking) {
  GenerateOptions options;
  options.sampling = asking.sampling;
  options.max_tokens = asking.tokens;
  options.prefill_chunk = asking.prefill_chunk;
  options.ignore_eos = true;
  return options;
}

inline GenerateResult generate(const Pair& pair, const Recipe& recipe, const std::vector<int32_t>& prompt,
                               const Asking& asking) {
  Session session(pair.target, static_cast<int64_t>(prompt.size()) + asking.tokens, asking.threads);
  session.set_draft_model(pair.draft);
  return session.generate(prompt, options_of(asking), recipe);
}

/// What all the texts of a test took.
struct Work {
  int64_t texts = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
};

/// Compares a recipe's text with the plain one.
inline void expect_plain_text(const Pair& pair, const Recipe& recipe, const std::vector<int32_t>& prompt,
                              const Asking& asking, const GenerateResult& plain, Work& work) {
  const GenerateResult result = generate(pair, recipe, prompt, asking);
  ASSERT_EQ(result.tokens, plain.tokens)
      << recipe.name << ": " << asking << "\nprompt: " << pair.target.decode(prompt);
  ASSERT_EQ(result.text, plain.text) << recipe.name << ": " << asking;
  expect_consistent(result.stats, recipe);
  ++work.texts;
  work.drafted += result.stats.drafted;
  work.accepted += result.stats.accepted;
}

}  // namespace verbatim::test
