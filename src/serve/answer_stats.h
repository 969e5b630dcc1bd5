#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "serve/json.h"
#include "verbatim/generate.h"
#include "verbatim/recipe.h"

namespace verbatim::serve {

/// What the choices of an answer took together.
class AnswerStats {
 public:
  AnswerStats(Recipe recipe, uint64_t seed) : recipe_(std::move(recipe)), seed_(seed) {}

  /// Adds a choice that has ended. Choices with the same `prompt` have the same prompt, whose tokens count
  /// once.
  void add(const GenerateResult& result, int64_t prompt_tokens, size_t prompt = 0);

  int64_t prompt_tokens() const;
  /// The tokens of prompts that were remembered from earlier requests.
  int64_t cached_tokens() const;
  int64_t generated_tokens() const { return generated_; }

  /// The member `usage` of OpenAI's answers.
  Json usage() const;
  /// The member `verbatim` of answers.
  Json extension() const;

 private:
  struct Prompt {
    int64_t tokens = 0;
    int64_t cached = 0;
  };

  Recipe recipe_;
  uint64_t seed_;
  std::map<size_t, Prompt> prompts_;
  int64_t generated_ = 0;
  int64_t drafted_ = 0;
  int64_t accepted_ = 0;
  int64_t passes_ = 0;
  double seconds_prefill_ = 0;
  double seconds_decode_ = 0;
  double tokens_per_second_ = 0;
  std::vector<int64_t> lengths_;
  std::vector<LevelStats> levels_;
};

}  // namespace verbatim::serve
