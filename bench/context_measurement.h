#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/bench_decode_models.h"

namespace verbatim::bench {

/// What to measure: recipes whose model drafts for itself, with and without its cache in fewer bits.
struct ContextBenchPlan {
  std::vector<int64_t> contexts;
  std::vector<int32_t> lengths;  ///< tokens per draft to choose from
  std::vector<int32_t> shipped =
      {};  ///< by case, of recipes the length that they come with: one of `lengths`
  int32_t threads = 0;
  double seconds = 1.0;  ///< per pass and context
  int min_rounds = 5;
};

/// How often the drafts of a recipe are kept on real text: survival[d] is the share of drafts whose first
/// d + 1 tokens all are.
struct ContextAcceptance {
  std::vector<double> survival;
  /// The share of the positions decoded there at which some of the past was met as codes; nothing where that
  /// is not known.
  std::optional<double> share_beyond_buffer = std::nullopt;

  /// Tokens that a step of `length` drafts gains on average, the model's own included.
  double tokens_per_step(int32_t length) const;
};

/// A recipe at one context.
struct ContextResult {
  std::string recipe;
  int64_t context = 0;
  double plain = 0;            ///< seconds of a pass of plain decoding with the BF16 cache
  double draft = 0;            ///< of a pass of the draft
  double verify = 0;           ///< of the pass that verifies, over length + 1 rows
  int32_t length = 0;          ///< the best of the plan's
  double tokens = 1;           ///< per step
  double speedup = 1;          ///< over plain decoding with the BF16 cache
  int32_t length_shipped = 0;  ///< that the recipe comes with
  double speedup_shipped = 1;  ///< at that length
  int64_t cache_bytes = 0;     ///< for the context
  int64_t plain_cache_bytes = 0;
  int64_t weight_bytes = 0;  ///< that the recipe holds
  bool in_turns = true;      ///< all caches were measured in turns; otherwise one after the other
};

/// Throws Error(kMachine) when some cache of one of the contexts does not fit into memory alone, with what
/// the drafts that read it copy.
void require_contexts(const std::vector<app::DecodeCase>& cases, const ContextBenchPlan& plan);

/// Measures what passes cost at every context, with caches that hold random keys and values: costs do not
/// depend on them. cases[0] is plain. The passes of all recipes take turns, so that a machine whose speed
/// drifts treats them alike; only where the caches of a context do not fit into memory beside each other,
/// those of one cache after those of another. Throws Error(kMachine) when one of them does not fit alone.
/// `progress` hears the fraction that is done.
std::vector<ContextResult> bench_contexts(const std::vector<app::DecodeCase>& cases,
                                          const std::vector<ContextAcceptance>& acceptance,
                                          const ContextBenchPlan& plan,
                                          const std::function<void(double)>& progress);

}  // namespace verbatim::bench
