#pragma once

#include <gtest/gtest.h>

#include "support/engine_support.h"
#include "support/machine_paths.h"
#include "support/test_data.h"

// The promise: the same model, prompt and seed give the same bytes, plain or speculative, whatever the draft
// length, the prefill chunk and the number of threads, on every machine path, at any temperature.

namespace verbatim::test {

/// What must not change the text.
struct Variation {
  int32_t threads;
  int32_t draft_length;  // 0: plain
  float threshold;
  int64_t prefill_chunk;
};

inline std::ostream& operator<<(std::ostream& out, const Variation& v) {
  return out << v.threads << " threads, draft length " << v.draft_length << ", threshold " << v.threshold
             << ", prefill chunk " << v.prefill_chunk;
}

/// Every combination of threads 1 and 2, draft lengths 1, 4, 8, 16 and chunks 1, 7, 64, 512, one after the
/// other; from kVariations on they come again, with the threshold rule.
inline Variation variation(size_t index) {
  constexpr int32_t kLengths[] = {1, 4, 8, 16};
  constexpr int64_t kChunks[] = {1, 7, 64, 512};
  return {static_cast<int32_t>(1 + index % 2), kLengths[index / 2 % 4], index / 32 % 2 == 0 ? 0.0f : 0.4f,
          kChunks[index / 8 % 4]};
}
inline constexpr size_t kVariations = 32;

inline GenerateResult generate(const Model& model, const std::vector<int32_t>& prompt, float temperature,
                               int64_t tokens, const Variation& v) {
  GenerateOptions options;
  options.sampling.temperature = temperature;
  options.sampling.seed = 42;
  options.max_tokens = tokens;
  options.prefill_chunk = v.prefill_chunk;
  options.ignore_eos = true;
  Recipe recipe = load_recipe(v.draft_length == 0 ? "plain" : "ml-specqd");
  if (v.draft_length > 0) {
    recipe.levels.front().length = v.draft_length;
    recipe.levels.front().threshold = v.threshold;
  }
  Session session(model, static_cast<int64_t>(prompt.size()) + tokens, v.threads);
  return session.generate(prompt, options, recipe);
}

inline constexpr Variation kPlain = {1, 0, 0.0f, 512};

struct Totals {
  int64_t drafted = 0;
  int64_t accepted = 0;
  size_t comparisons = 0;
};

inline void expect_identical(const Model& model, const std::vector<int32_t>& ids, float temperature,
                             int64_t tokens, const std::vector<size_t>& variations, Totals& totals) {
  const GenerateResult plain = generate(model, ids, temperature, tokens, kPlain);
  ASSERT_EQ(plain.tokens.size(), static_cast<size_t>(tokens));
  for (const size_t index : variations) {
    const Variation v = variation(index);
    const GenerateResult speculative = generate(model, ids, temperature, tokens, v);
    ASSERT_EQ(speculative.tokens, plain.tokens) << v << "\nprompt: " << model.decode(ids);
    ASSERT_EQ(speculative.text, plain.text) << v << "\nprompt: " << model.decode(ids);
    totals.drafted += speculative.stats.drafted;
    totals.accepted += speculative.stats.accepted;
    ++totals.comparisons;
  }
}

class ByteIdentity : public testing::TestWithParam<std::tuple<MachinePath, float>> {
 protected:
  SelectedKernels selected_{*std::get<0>(GetParam()).table};
  float temperature_ = std::get<1>(GetParam());
};

inline std::string parameter_name(const testing::TestParamInfo<std::tuple<MachinePath, float>>& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) > 0 ? "_sampled" : "_greedy");
}

}  // namespace verbatim::test
