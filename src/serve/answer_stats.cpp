#include "serve/answer_stats.h"

#include <algorithm>

namespace verbatim::serve {

void AnswerStats::add(const GenerateResult& result, int64_t prompt_tokens, size_t prompt) {
  const Stats& stats = result.stats;
  const bool evaluated = stats.generated_tokens > 0;
  const int64_t cached = evaluated ? std::max<int64_t>(0, prompt_tokens - stats.prompt_tokens) : 0;
  const auto [place, inserted] = prompts_.try_emplace(prompt, Prompt{prompt_tokens, cached});
  // The first of several choices evaluates the prompt for the others.
  if (!inserted) place->second.cached = std::min(place->second.cached, cached);
  generated_ += stats.generated_tokens;
  drafted_ += stats.drafted;
  accepted_ += stats.accepted;
  passes_ += stats.target_passes;
  // Choices are generated beside each other.
  seconds_prefill_ = std::max(seconds_prefill_, stats.seconds_prefill);
  seconds_decode_ = std::max(seconds_decode_, stats.seconds_decode);
  tokens_per_second_ += stats.tokens_per_second();
  if (lengths_.size() < stats.lengths.size()) lengths_.resize(stats.lengths.size());
  for (size_t i = 0; i < stats.lengths.size(); ++i) lengths_[i] += stats.lengths[i];
  for (size_t i = 0; i < stats.levels.size(); ++i) {
    if (i == levels_.size()) levels_.emplace_back().level = stats.levels[i].level;
    levels_[i].drafted += stats.levels[i].drafted;
    levels_[i].accepted += stats.levels[i].accepted;
  }
}

int64_t AnswerStats::prompt_tokens() const {
  int64_t sum = 0;
  for (const auto& [index, prompt] : prompts_) sum += prompt.tokens;
  return sum;
}

int64_t AnswerStats::cached_tokens() const {
  int64_t sum = 0;
  for (const auto& [index, prompt] : prompts_) sum += prompt.cached;
  return sum;
}

Json AnswerStats::usage() const {
  return {{"prompt_tokens", prompt_tokens()},
          {"completion_tokens", generated_},
          {"total_tokens", prompt_tokens() + generated_},
          {"prompt_tokens_details", {{"cached_tokens", cached_tokens()}}}};
}

Json AnswerStats::extension() const {
  Json levels = Json::array();
  for (const LevelStats& each : levels_) {
    levels.push_back(
        {{"name", each.level.short_name()}, {"drafted", each.drafted}, {"accepted", each.accepted}});
  }
  return {{"recipe", recipe_.name},
          {"lossless", recipe_.lossless()},
          {"guarantee", recipe_.guarantee()},
          {"seed", static_cast<int64_t>(seed_)},
          {"drafted", drafted_},
          {"accepted", accepted_},
          {"passes", passes_},
          {"lengths", lengths_},
          {"tokens_per_second", tokens_per_second_},
          {"seconds_prefill", seconds_prefill_},
          {"seconds_decode", seconds_decode_},
          {"levels", std::move(levels)}};
}

}  // namespace verbatim::serve
