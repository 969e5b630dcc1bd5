#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drafting/drafter_stack.h"
#include "drafting/pass_costs.h"
#include "speculation/acceptance.h"
#include "speculation/fading_line.h"

namespace verbatim {

/// The pass costs by which a planner decides.
struct PlanningCosts {
  PassCosts target;  ///< the costs of verification
  std::vector<std::optional<PassCosts>>
      levels;  ///< the costs of drafting, by level of the recipe; none for n-grams
};

/// Chooses for each step which levels draft, how deep and how broad, for the most tokens per second: SPEQ's
/// eq. 1 and 2 (accepted tokens over the time of drafting and verifying), applied to trees and nested levels.
///
/// A plan is a drafter, perhaps with another inside, or plain decoding. The rate of a plan, in tokens per
/// second, is measured while it is used, as an average in which older steps fade. Before its first use a plan
/// is taken to be worth the best chain by the costs of passes. Losing plans are tried again now and then,
/// ever more rarely. Within a plan the stop rule is marginal: another token is drafted while its expected
/// gain, at the rate of the best plan, is worth more time than it costs. N-grams cost nothing, so they are
/// asked first at every step, and replace the best plan where their expected rate is clearly higher. The rate
/// of plain decoding is known from its pass cost.
///
/// The choice never changes the text.
class Planner {
 public:
  /// `drafters` has the levels of `recipe` and outlives the planner.
  Planner(const Recipe& recipe, DrafterStack& drafters, PlanningCosts costs);
  Planner(const Planner&) = delete;  // the drafters know where its costs are
  Planner& operator=(const Planner&) = delete;

  /// Chooses a plan and drafts with it: adds nodes to the empty `draft`. The sequence may grow by `room`
  /// tokens. Its last `certain` tokens are yet to be verified, with the draft, but nothing else can come in
  /// their place.
  void propose(Sequence& sequence, Sampler& sampler, int64_t room, int64_t certain, Draft& draft);
  /// Drafts for a step of a batch, which decides about every pass and every row (PassBatcher): adds nodes to
  /// the empty `draft` that are worth a pass or a row if those of the other sequences leave time for it. The
  /// sequence may grow by `room` tokens, and its last `certain` tokens are yet to be verified, as in
  /// propose(). `keep` has the keep thresholds of the batch.
  void propose_shared(Sequence& sequence, Sampler& sampler, int64_t room, int64_t certain,
                      const PassRunner::KeepThresholds& keep, Draft& draft);
  /// Learns from a step: the draft of the last propose() behind the certain tokens, the tokens that the step
  /// appended, and the seconds that drafting and verification took. In a batch `verified` is the shared pass
  /// that verified the draft.
  void learn(const Draft& draft, std::span<const int32_t> appended, double seconds_draft,
             double seconds_verify, const PassRunner::PassTiming& verified = {});

  /// Sets the number of sequences that share passes. From two on the time of a step is not measured, since it
  /// would include waiting for the drafts of other sequences; it is computed from the pass costs, as if all
  /// sequences took the same step.
  void set_batch(int64_t sequences);

  /// The costs of passes that verify, with what was learnt of them; they change by learn().
  const PassCosts& verification_costs() const { return costs_.target; }
  /// The costs of passes of the first network that drafts; null if none does or they are unknown.
  const PassCosts* drafting_costs() const;

  /// Sets the statistics to zero.
  void begin();
  /// How often each plan was chosen since begin().
  const std::vector<PlanStats>& chosen() const { return chosen_; }
  /// The seconds of the last propose() that the drafters took; the rest was planning.
  double seconds_drafting() const { return seconds_ngrams_ + seconds_outer_; }
  /// The seconds that all drafting since begin() was expected to take.
  double expected_draft() const { return expected_draft_; }
  /// The seconds that all verification since begin() was expected to take.
  double expected_verify() const { return expected_verify_; }
  /// The seconds of all verification since begin() by the table of measured pass costs. The same for drafting
  /// is in the statistics of the levels.
  double table_verify() const { return table_verify_; }

 private:
  /// The smallest number of steps between two trials of a losing plan; it doubles with every trial.
  static constexpr int64_t kOftenest = 16;

  struct Plan {
    std::string name;
    std::optional<size_t> outer;  // the level that drafts; none: plain decoding
    std::optional<size_t> inner;  // the level that drafts for `outer`, if any
    double tokens = 0;            // the average number of tokens of a step
    double seconds = 0;           // the average seconds of a step
    double draft_seconds = 0;     // the average seconds of drafting, per token of depth
    double rows = 0;              // the average number of rows of a verification
    double passes = 0;            // the average number of passes of `outer` in a step, in passes over one row
    FadingLine step_seconds{0};   // the seconds of drafting in a step, by the passes of `outer`
    int64_t unused = 0;           // the number of steps since the plan was chosen
    int64_t uses = 0;             // the number of steps in which the plan was chosen
    int64_t interval = kOftenest;  // the number of steps between trials while the plan loses
    bool measured = false;         // of plain decoding: whether a step of it has been timed
    Calibration inner_calibration{};
    double rate() const { return tokens / seconds; }
  };

  void use_batch_costs(double& seconds_draft, double& seconds_verify, int64_t rows,
                       const PassRunner::PassTiming& verified);
  void expect(Plan& plan, double old_pass_seconds) const;
  void add_plan(std::optional<size_t> outer, std::optional<size_t> inner);
  bool guessed(const Plan& plan) const;
  double drafted_token_seconds(const Plan& plan) const;
  void guess(Plan& plan) const;
  void guess_again();
  size_t best_plan() const;
  size_t pick() const;
  std::optional<size_t> best_network() const;
  void begin_step(int64_t certain);
  bool is_model(std::optional<size_t> level) const;
  void draft_with_network(const Plan& plan, DraftLimits limits, Sequence& sequence, Sampler& sampler,
                          int64_t room);
  bool known(const Plan& plan) const;
  void learn_plain(int64_t rows, double seconds_verify);
  void learn_ngrams(std::span<const int32_t> appended);
  void learn_drafting(Plan& plan, double rate);
  void learn_plan(Plan& plan, const Draft& draft, std::span<const int32_t> appended, double seconds_step);
  void learn_unused(const Plan& used, int64_t rows, double rate);
  void credit(std::span<const int32_t> appended);
  DraftLimits outer_limits(const Plan& plan) const;
  DraftLimits inner_limits(const Plan& plan) const;
  void propose_ngrams(Sequence& sequence, Sampler& sampler, int64_t room, float least);
  void take_ngrams(Draft& draft);
  double rate_after_certain(const Plan& plan) const;
  double pass_seconds(size_t level) const;
  double passes_of(size_t level) const;
  void prune(Draft& draft, double rate) const;
  static double expected_tokens(const Draft& draft);

  Recipe recipe_;
  DrafterStack* drafters_;
  PlanningCosts costs_;
  std::vector<Plan> plans_;                // plans_[0] is plain decoding
  std::vector<Calibration> calibrations_;  // by level: of drafts that the model verifies
  std::optional<size_t> ngrams_;           // the level of n-grams, if there is one
  Draft ngram_draft_;                      // the draft of the n-grams in this step
  Draft outer_draft_;            // the draft of the plan's drafter, before merging and leaving out nodes
  int64_t batch_ = 1;            // the number of sequences that share passes
  int64_t certain_ = 0;          // the tokens of this step before its draft, which cannot be rejected
  size_t current_ = 0;           // the plan of this step; plans_.size(): n-grams
  int64_t passes_before_ = 0;    // the passes of the outer drafter before this step
  double passed_over_ = 0;       // the expected rate of n-grams that gave way to measuring a plan
  bool ngrams_offered_ = false;  // whether the draft of this step includes that of the n-grams
  double seconds_ngrams_ = 0;    // the seconds of n-grams in the last propose()
  double seconds_outer_ = 0;     // the seconds of a network in the last propose()
  double ngram_seconds_ = 0;     // the average seconds of n-grams in a step
  double seconds_ = 0;           // the seconds of all steps
  double lost_ = 0;              // the seconds that trials of losing plans cost while it decoded alone
  double expected_draft_ = 0;
  double expected_verify_ = 0;
  double table_verify_ = 0;
  std::vector<PlanStats> chosen_;
};

}  // namespace verbatim
