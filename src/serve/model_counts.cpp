#include "serve/model_counts.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>

namespace verbatim::serve {

namespace {

prometheus::Counter* counter(prometheus::Registry& registry, const char* name, const char* help,
                             const std::string& model) {
  return &prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({{"model", model}});
}

prometheus::Gauge* gauge(prometheus::Registry& registry, const char* name, const char* help,
                         const std::string& model) {
  return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({{"model", model}});
}

prometheus::Histogram* histogram(prometheus::Registry& registry, const char* name, const char* help,
                                 const std::string& model, double first) {
  prometheus::Histogram::BucketBoundaries bounds;
  constexpr int kBounds = 15;  // powers of two
  for (int i = 0; i < kBounds; ++i) bounds.push_back(first * static_cast<double>(1 << i));
  return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({{"model", model}},
                                                                                    bounds);
}

int64_t this_second() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ModelCounts::ModelCounts(prometheus::Registry& registry, const std::string& model)
    : generated_(counter(registry, "verbatim_generated_tokens_total", "Tokens that were generated.", model)),
      prompt_(counter(registry, "verbatim_prompt_tokens_total",
                      "Tokens of prompts, those included that were remembered.", model)),
      cached_(counter(registry, "verbatim_cached_prompt_tokens_total",
                      "Tokens of prompts that were remembered and not evaluated again.", model)),
      drafted_(counter(registry, "verbatim_drafted_tokens_total",
                       "Tokens that were drafted for the model to verify.", model)),
      accepted_(
          counter(registry, "verbatim_accepted_tokens_total", "Drafted tokens that the model kept.", model)),
      waiting_(gauge(registry, "verbatim_requests_waiting", "Choices that wait for their turn.", model)),
      running_(gauge(registry, "verbatim_requests_running", "Choices that are being generated.", model)),
      first_token_(histogram(registry, "verbatim_time_to_first_token_seconds",
                             "Time from a request's arrival to its first token.", model, 0.005)),
      between_tokens_(histogram(registry, "verbatim_time_between_tokens_seconds",
                                "Time from one token of a choice to its next.", model, 0.0005)) {}

void ModelCounts::took_tokens(int64_t count, bool first, double seconds) {
  if (count == 0) return;
  generated_->Increment(static_cast<double>(count));
  if (first) {
    first_token_->Observe(seconds);
  } else {
    for (int64_t i = 0; i < count; ++i) between_tokens_->Observe(seconds / static_cast<double>(count));
  }
  const int64_t now = this_second();
  const auto slot = static_cast<size_t>(now % kSeconds);
  const std::lock_guard lock(mutex_);
  totals_.generated += count;
  if (second_of_[slot] != now) {
    second_of_[slot] = now;
    tokens_of_second_[slot] = 0;
  }
  tokens_of_second_[slot] += count;
}

void ModelCounts::ended(const GenerateResult& result, int64_t prompt_tokens, bool plain) {
  const Stats& stats = result.stats;
  const bool evaluated = stats.generated_tokens > 0;
  const int64_t cached = evaluated ? std::max<int64_t>(0, prompt_tokens - stats.prompt_tokens) : 0;
  prompt_->Increment(static_cast<double>(prompt_tokens));
  cached_->Increment(static_cast<double>(cached));
  drafted_->Increment(static_cast<double>(stats.drafted));
  accepted_->Increment(static_cast<double>(stats.accepted));
  const std::lock_guard lock(mutex_);
  totals_.prompt += prompt_tokens;
  totals_.cached += cached;
  totals_.drafted += stats.drafted;
  totals_.accepted += stats.accepted;
  if (totals_.lengths.size() < stats.lengths.size()) totals_.lengths.resize(stats.lengths.size());
  for (size_t i = 0; i < stats.lengths.size(); ++i) totals_.lengths[i] += stats.lengths[i];
  constexpr int64_t kEnoughTokens = 8;
  if (plain && stats.generated_tokens >= kEnoughTokens && stats.seconds_decode > 0) {
    totals_.plain_tokens_per_second = stats.tokens_per_second();
  }
}

void ModelCounts::set_queue(int64_t waiting, int64_t running) {
  waiting_->Set(static_cast<double>(waiting));
  running_->Set(static_cast<double>(running));
}

ModelCounts::Totals ModelCounts::totals() const {
  constexpr int64_t kWindow = 5;  // whole seconds before this one
  const int64_t now = this_second();
  const std::lock_guard lock(mutex_);
  Totals totals = totals_;
  int64_t tokens = 0;
  for (size_t i = 0; i < second_of_.size(); ++i) {
    if (second_of_[i] < now && second_of_[i] >= now - kWindow) tokens += tokens_of_second_[i];
  }
  totals.tokens_per_second = static_cast<double>(tokens) / kWindow;
  return totals;
}

}  // namespace verbatim::serve
