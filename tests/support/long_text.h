#pragma once

#include "support/speculative_text.h"

namespace verbatim::test {

/// Real text, long enough for several flushes of the buffer, without the first `skipped` prompts of it.
inline std::vector<int32_t> long_prompt(const Model& model, size_t tokens, size_t skipped = 0) {
  const std::vector<std::string> prompts = real_prompts(12 + skipped, 600);
  std::string text;
  for (size_t i = skipped; i < prompts.size(); ++i) text += prompts[i] + "\n";
  std::vector<int32_t> prompt = model.encode(text);
  prompt.resize(std::min(prompt.size(), tokens));
  return prompt;
}

/// So many tokens at temperature 0.
inline Asking greedy(int64_t tokens) {
  Asking asking;
  asking.tokens = tokens;
  return asking;
}

/// Plain decoding with the same cache: what a recipe with another cache than BF16 must equal.
inline Recipe plain_with_cache_of(const Recipe& recipe) {
  Recipe plain = load_recipe("plain");
  plain.cache = recipe.cache;
  return plain;
}

}  // namespace verbatim::test
