#pragma once

#include "speculation/acceptance.h"
#include "speculation/drafter_stack.h"
#include "speculation/planner.h"
#include "verbatim/generate.h"

namespace verbatim {

/// Advances a sequence step by step: propose, verify in one pass, keep what the acceptance rule keeps, and
/// add the model's own next token. Without drafters a step is a step of plain decoding.
class Speculator {
 public:
  /// `evaluator` evaluates the model and outlives the speculator. A recipe that is planned needs `costs`.
  Speculator(const Recipe& recipe, std::unique_ptr<DrafterStack> drafters, Evaluator& evaluator,
             std::optional<PlanningCosts> costs = std::nullopt);

  /// Starts a generation with these settings, this constraint and new statistics. What drafters have learnt
  /// stays.
  void begin(const SamplingOptions& sampling, Constraint constraint = {});
  /// Says where the score of every token that is appended goes from now on; an empty sink: nowhere.
  void score_into(const ScoreSink& scores) { scores_ = scores; }

  /// Says how many sequences share its passes from now on. A planner weighs that; without one a stop rule
  /// made for one sequence gives way, from two on, to what a row of the batch's passes is worth.
  void set_batch(int64_t sequences);

  /// Evaluates up to `chunk` of the prompt's pending tokens. Returns true when these were the last and the
  /// first token after them has been appended.
  bool prefill(Sequence& sequence, int64_t chunk, Stats& stats);

  /// Appends between 1 and budget ≥ 1 tokens. The cache must have room for the sequence and budget - 1 more.
  void step(Sequence& sequence, int64_t budget, Stats& stats);

  /// Adds what drafters and planner have counted since begin() to the statistics.
  void end(Stats& stats) const;

  const Recipe& recipe() const { return recipe_; }

 private:
  DraftLimits limits() const;
  void propose(Sequence& sequence, int64_t room, Stats& stats);
  void count(const Verdict& verdict, Stats& stats) const;

  Recipe recipe_;
  PassKind verifying_;
  std::unique_ptr<DrafterStack> drafters_;
  Evaluator* evaluator_;
  Sampler sampler_{SamplingOptions{}};
  ScoreSink scores_;
  std::optional<Planner> planner_;
  DraftLimits limits_;                      // by the recipe
  bool shared_ = false;                     // whether other sequences share its passes
  std::optional<Calibration> calibration_;  // of the drafts, where there is no planner to know
  Draft draft_;
};

}  // namespace verbatim
