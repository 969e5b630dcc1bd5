#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench_decode_models.h"

namespace verbatim::app {

/// What to measure: recipes whose model drafts for itself, with and without its cache in fewer bits.
struct ContextBenchPlan {
  std::vector<int64_t> contexts;
  std::vector<int32_t> lengths;  ///< tokens per draft to choose from
  int32_t threads = 0;
  double seconds = 1.0;  ///< per pass and context
  int min_rounds = 5;
};

/// How often the drafts of a recipe are kept on real text: survival[d] is the share of drafts whose first
/// d + 1 tokens all are.
struct ContextAcceptance {
  std::vector<double> survival;

  /// Tokens that a step of `length` drafts gains on average, the model's own included.
  double tokens_per_step(int32_t length) const;
};

/// A recipe at one context.
struct ContextResult {
  std::string recipe;
  int64_t context = 0;
  double plain = 0;         ///< seconds of a pass of plain decoding with the BF16 cache
  double draft = 0;         ///< of a pass of the draft
  double verify = 0;        ///< of the pass that verifies, over length + 1 rows
  int32_t length = 0;       ///< the best of the plan's
  double tokens = 1;        ///< per step
  double speedup = 1;       ///< over plain decoding with the BF16 cache
  int64_t cache_bytes = 0;  ///< for the context
  int64_t plain_cache_bytes = 0;
  int64_t weight_bytes = 0;  ///< that the recipe holds
  bool in_turns = true;      ///< all caches were measured in turns; otherwise one after the other
};

/// Measures what passes cost at every context, with caches that hold random keys and values: costs do not
/// depend on them. cases[0] is plain. The passes of all recipes take turns, so that a machine whose speed
/// drifts treats them alike; only where the caches of a context do not fit into memory beside each other,
/// those of one cache after those of another. Throws Error(kMachine) when one of them does not fit alone.
/// `progress` hears the fraction that is done.
std::vector<ContextResult> bench_contexts(const std::vector<DecodeCase>& cases,
                                          const std::vector<ContextAcceptance>& acceptance,
                                          const ContextBenchPlan& plan,
                                          const std::function<void(double)>& progress);

}  // namespace verbatim::app
