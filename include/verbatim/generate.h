#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/model.h"
#include "verbatim/recipe.h"
#include "verbatim/sampling.h"

namespace verbatim {

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 128;
  bool ignore_eos = false;
  /// Generation ends before the first of these strings in the text. None is empty.
  std::vector<std::string> stop;
  /// Generation also ends with any of these tokens, whose text is left out.
  std::vector<int32_t> stop_tokens;
  /// Prompt tokens per pass. Changes speed and memory, never the text.
  int64_t prefill_chunk = 512;
  /// Asked before every pass over a prompt and before every step, if given: true ends the generation there.
  std::function<bool()> cancelled = {};
  /// Told how much of the prompt is evaluated, from 0 to 1: once before the first pass over it and after
  /// each.
  std::function<void(double)> prefill_progress = {};
};

enum class FinishReason { kLength, kEndOfSequence, kStopString, kContext, kCancelled, kDeadline };

/// "length", "eos", "stop", "context", "cancelled" or "deadline".
std::string_view finish_reason_name(FinishReason reason);

/// What happened at one depth of the drafts: 0 is the first drafted token of a step.
struct DepthStats {
  int64_t drafted = 0;   ///< steps that drafted so deep
  int64_t accepted = 0;  ///< of those, steps whose text took a draft from here
};

/// What one level of drafting did for the level above it.
struct LevelStats {
  /// Which one it is: a planned recipe goes without the levels that there is nothing for.
  DraftLevel level;
  int64_t drafted = 0;   ///< tokens it proposed
  int64_t accepted = 0;  ///< of those, tokens that the level above kept
  int64_t passes = 0;    ///< evaluations of a model; 0 for n-grams
  double seconds = 0;    ///< with what the levels below it took
  /// Under a planner whose table of costs has this level: what its passes took, without what surrounds them,
  /// and what the table says of exactly these passes, as it was measured.
  double seconds_passes = 0;
  double table_seconds = 0;
};

/// How often the planner chose a way to draft: "plain", "self", "self <- ngram", ...
struct PlanStats {
  std::string name;
  int64_t steps = 0;
};

struct Stats {
  int64_t prompt_tokens = 0;  ///< newly evaluated for this call
  int64_t generated_tokens = 0;
  int64_t drafted = 0;             ///< tokens proposed to the model
  int64_t accepted = 0;            ///< of those, tokens that verification kept
  int64_t target_passes = 0;       ///< passes in the full reading while decoding
  int64_t draft_passes = 0;        ///< passes of all drafters
  int64_t fallbacks = 0;           ///< steps whose drafting ended because the drafter was unsure
  int64_t rollbacks = 0;           ///< steps in which the model rejected a draft
  double seconds_prefill = 0;      ///< until the first token is known
  double seconds_decode = 0;       ///< all the rest
  double seconds_draft = 0;        ///< of the decoding time: proposing
  double seconds_verify = 0;       ///< of the decoding time: the model's passes
  double seconds_sampling = 0;     ///< of the decoding time: choosing tokens after verification
  double seconds_planning = 0;     ///< of the decoding time: the planner
  std::vector<LevelStats> levels;  ///< those of the recipe, in its order
  std::vector<DepthStats> depths;  ///< by depth
  std::vector<int64_t> lengths;    ///< steps by how many drafts they kept
  std::vector<PlanStats> plans;    ///< of recipes that are planned
  double expected_draft = 0;   ///< what the planner expected that the drafts take, as it had learnt so far
  double expected_verify = 0;  ///< likewise the model's passes
  /// What the planner's table of costs, as it was measured and not as it was adjusted since, says of exactly
  /// the passes that ran. 0 without a planner.
  double table_seconds_draft = 0;   ///< of drafters: networks alone, but for those that are translated
  double table_seconds_verify = 0;  ///< of the model: compare with seconds_verify
  double seconds_draft_passes = 0;  ///< what the passes of table_seconds_draft took
  FinishReason finish = FinishReason::kLength;

  /// Accepted over drafted tokens; 0 when none was drafted.
  double acceptance_rate() const;
  /// Tokens gained per pass of the target while decoding (1 for plain decoding).
  double mean_accepted_length() const;
  /// Tokens after the first, per second of decoding; 0 when there are none.
  double tokens_per_second() const;
  /// The planner's share of the decoding time, in percent.
  double planning_percent() const;
  /// The decoding time that is neither drafting, verifying, sampling nor planning: text, bookkeeping.
  double seconds_overhead() const;
};

struct GenerateResult {
  std::string text;
  std::vector<int32_t> tokens;  ///< the generated ones, a final end-of-sequence token included
  Stats stats;
};

/// One sequence of tokens with its cache. Not for use from several threads at once; different sessions of a
/// model may run on different threads.
class Session {
 public:
  /// `capacity` is the most tokens the sequence may reach, at most the model's context (0 means the context);
  /// `threads` 0 takes every processor this process may run on.
  Session(const Model& model, int64_t capacity = 0, int32_t threads = 0);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Called with each piece of text as it becomes final, in whole UTF-8 characters. Returning false cancels.
  using OnText = std::function<bool(std::string_view)>;

  /// Appends a prompt's tokens to the sequence and generates from there. What earlier calls left in the cache
  /// is not evaluated again. Throws Error(kBadInput) when the sequence is empty or does not fit,
  /// Error(kUsage) when the recipe needs weights that the model was loaded without, and, before anything is
  /// computed, Error(kMachine) when the memory that is available does not hold the sequence with all the
  /// tokens that may be generated.
  ///
  /// The same sequence, options and seed give the same tokens with every lossless recipe, chunk size and
  /// number of threads.
  GenerateResult generate(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                          const Recipe& recipe, const OnText& on_text = {});

  /// Gives the model that recipes with a `model` level draft with. Its vocabulary may be another one.
  void set_draft_model(const Model& model);

  /// Gets what a recipe needs before its first use: for a planned one, what passes cost on this machine, from
  /// the user's cache directory or measured now, which takes seconds for a large model. generate() does so
  /// itself if need be; this one tells how far it is.
  void prepare(const Recipe& recipe, const std::function<void(double)>& progress = {});

  /// Forgets the tokens from `length` on, so that the next prompt continues from there.
  void truncate(int64_t length);

  /// Every token so far: prompts and what was generated.
  const std::vector<int32_t>& tokens() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verbatim
