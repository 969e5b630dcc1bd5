#pragma once

#include "drafting/drafter_stack.h"
#include "speculation/acceptance.h"
#include "speculation/planner.h"
#include "verbatim/generate.h"

namespace verbatim {

/// Decodes a sequence step by step. A step drafts, verifies the draft in one pass, keeps the tokens that the
/// acceptance rule keeps, and adds one token of the model's own. Without drafters a step is a step of plain
/// decoding.
class Speculator {
 public:
  /// `evaluator` evaluates the model and outlives the speculator. `costs` are needed by a recipe with a
  /// planner.
  Speculator(const Recipe& recipe, std::unique_ptr<DrafterStack> drafters, Evaluator& evaluator,
             std::optional<PlanningCosts> costs = std::nullopt);

  /// Starts a generation with these settings, this constraint and new statistics. Drafters keep what they
  /// have learnt.
  void begin(const SamplingOptions& sampling, Constraint constraint = {});
  /// Sets the sink that is called with the score of every token that is appended; an empty sink ends the
  /// calls.
  void score_into(const ScoreSink& scores) { scores_ = scores; }
  /// Sets the list that the origin of every token that is appended is added to; null ends the additions. The
  /// list must outlive the steps.
  void record_origins(std::vector<TokenOrigin>* origins) { origins_ = origins; }

  /// Sets the list that every step is added to; null ends the additions. The list must outlive the steps.
  void record_steps(std::vector<DecodingStep>* steps) { steps_ = steps; }

  /// Sets the number of sequences that share passes, this one included. From two sequences on a planner
  /// offers its drafts to the batch, and without a planner the keep thresholds of the batch replace the
  /// recipe's stop rule.
  void set_batch(int64_t sequences);

  /// Evaluates the next `chunk` tokens of the prompt, or the rest of it. Returns true once the whole prompt
  /// is evaluated and the first token after it has been appended.
  bool prefill(Sequence& sequence, int64_t chunk, Stats& stats);

  /// Takes one step, which appends between 1 and `budget` ≥ 1 tokens. The cache must have room for budget - 1
  /// tokens beyond the sequence.
  void step(Sequence& sequence, int64_t budget, Stats& stats);

  /// Adds the counts of the drafters and the planner since begin() to the statistics.
  void end(Stats& stats) const;

  const Recipe& recipe() const { return recipe_; }

 private:
  DraftLimits limits() const;
  bool may_draft() const;
  void propose_after(std::span<const int32_t> certain, Sequence& sequence, int64_t room, Stats& stats);
  void propose(Sequence& sequence, int64_t room, int64_t certain, Stats& stats);
  ForcedTokens find_forced(const Sequence& sequence, int64_t room, Stats& stats);
  void draft_forced(const ForcedTokens& forced);
  void count(const Verdict& verdict, Stats& stats) const;
  void add_origins(std::span<const int32_t> appended);
  int64_t draft_passes() const;

  Recipe recipe_;
  PassKind verifying_;
  std::unique_ptr<DrafterStack> drafters_;
  Evaluator* evaluator_;
  Sampler sampler_{SamplingOptions{}};
  ScoreSink scores_;
  std::vector<TokenOrigin>* origins_ = nullptr;
  std::vector<DecodingStep>* steps_ = nullptr;
  std::optional<Planner> planner_;
  DraftLimits limits_;                      // the recipe's stop rule
  bool shared_ = false;                     // whether other sequences share its passes
  std::optional<Calibration> calibration_;  // of drafts without a planner, which has its own
  Draft draft_;
  int64_t assumed_accepted_ = 0;  // the kept tokens since begin() that no drafter of the recipe proposed
  int64_t structure_alone_ = 0;   // the steps since begin() for which no drafter of the recipe was asked
};

}  // namespace verbatim
