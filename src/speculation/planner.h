#pragma once

#include <optional>
#include <string>
#include <vector>

#include "speculation/acceptance.h"
#include "speculation/drafter_stack.h"
#include "speculation/fading_line.h"
#include "speculation/pass_costs.h"

namespace verbatim {

/// The costs that a planner weighs.
struct PlanningCosts {
  PassCosts target;                              ///< the model, verifying
  std::vector<std::optional<PassCosts>> levels;  ///< of the recipe's levels; none for n-grams
};

/// Chooses for each step what drafts, how deep and how broad, for the most tokens per second: SPEQ's eq. 1
/// and 2 (accepted tokens over the time of drafting and verifying) for trees and nested levels.
///
/// A plan is a drafter, perhaps with another inside. Its rate is measured as it is used, an average that
/// fades; others are tried again now and then, ever more rarely while they lose. Within a plan the stop rule
/// is marginal: another token is drafted while what it is expected to bring, at the best rate there is, takes
/// longer than its cost. N-grams cost nothing to ask, so they are asked first at every step and win where
/// they promise clearly more than the best plan; that is measured first, and again now and then. Plain
/// decoding is a plan too, whose rate is known from its cost.
///
/// What is chosen never changes the text.
class Planner {
 public:
  /// `drafters` has the levels of `recipe` and outlives the planner.
  Planner(const Recipe& recipe, DrafterStack& drafters, PlanningCosts costs);

  /// Chooses and drafts: adds to the empty draft.
  void propose(Sequence& sequence, Sampler& sampler, int64_t room, Draft& draft);
  /// Hears how long that draft and its verification took and which tokens the step appended. `verified`: the
  /// pass that verified it, where it is shared.
  void learn(const Draft& draft, std::span<const int32_t> appended, double seconds_draft,
             double seconds_verify, const PassRunner::PassTiming& verified = {});

  /// From now on so many sequences share passes. What a plan takes is then not measured, since a sequence
  /// also waits for the drafts of others, but reckoned from the costs, as if all of them did the same.
  void set_batch(int64_t sequences);

  /// How often each plan was chosen, and what the costs promised. Starts anew with begin().
  void begin();
  const std::vector<PlanStats>& chosen() const { return chosen_; }
  /// What of the last propose() the drafters took; the rest was planning.
  double seconds_drafting() const { return seconds_ngrams_ + seconds_outer_; }
  double expected_draft() const { return expected_draft_; }
  double expected_verify() const { return expected_verify_; }
  /// What the costs as they were measured say of the verifications. Those of drafts are in the statistics of
  /// their levels.
  double table_verify() const { return table_verify_; }

 private:
  struct Plan {
    std::string name;
    std::optional<size_t> outer;  // a level; none: plain decoding
    std::optional<size_t> inner;  // the level that drafts for it
    double tokens = 0;            // per step, averaged
    double seconds = 0;           // likewise
    double draft_seconds = 0;     // per drafted token deep, averaged
    double rows = 0;              // of verification, averaged
    double passes = 0;            // of the outer drafter, in passes over one row, averaged
    FadingLine step_seconds{0};   // of drafting, by passes of the outer drafter
    int64_t unused = 0;           // steps since it was chosen
    int64_t uses = 0;
    int64_t interval = 16;  // steps between trials while it loses
    bool measured = false;  // plain decoding: whether a step of it has been timed
    Calibration inner_calibration{};
    double rate() const { return tokens / seconds; }
  };

  void use_batch_costs(double& seconds_draft, double& seconds_verify, int64_t rows,
                       const PassRunner::PassTiming& verified);
  void expect(Plan& plan, double old_pass_seconds) const;
  int64_t usual_rows(const Plan& plan) const;
  void add_plan(std::optional<size_t> outer, std::optional<size_t> inner);
  size_t best_plan() const;
  size_t pick() const;
  bool known(const Plan& plan) const;
  void learn_plain(int64_t rows, double seconds_verify);
  void learn_ngrams(std::span<const int32_t> appended);
  void learn_drafting(Plan& plan, double rate);
  void learn_plan(Plan& plan, const Draft& draft, size_t appended, double seconds_step);
  void credit(std::span<const int32_t> appended);
  DraftLimits outer_limits(const Plan& plan) const;
  DraftLimits inner_limits(const Plan& plan) const;
  void propose_ngrams(Sequence& sequence, Sampler& sampler, int64_t room, double rate);
  void take_ngrams(double rate, Draft& draft);
  double pass_seconds(size_t level) const;
  double passes_of(size_t level) const;
  void prune(Draft& draft, double rate) const;

  Recipe recipe_;
  DrafterStack* drafters_;
  PlanningCosts costs_;
  std::vector<Plan> plans_;                // plans_[0] is plain decoding
  std::vector<Calibration> calibrations_;  // of each level's drafts to the model
  std::optional<size_t> ngrams_;           // the level that is asked first
  Draft ngram_draft_;                      // its answer
  Draft outer_draft_;   // what the plan's drafter said, before anything was merged or left out
  int64_t batch_ = 1;   // sequences that share passes
  size_t current_ = 0;  // the plan of this step; plans_.size(): n-grams
  int64_t passes_before_ = 0;
  double passed_over_ = 0;       // tokens per second that n-grams promised where the plan was to be measured
  bool ngrams_offered_ = false;  // whether the draft of this step has what they said
  double seconds_ngrams_ = 0;    // of the last propose(): asking n-grams,
  double seconds_outer_ = 0;     // and drafting with a network
  double ngram_seconds_ = 0;     // of a step, averaged
  double seconds_ = 0;           // of all steps
  double lost_ = 0;              // of these, what trials of losing plans took too long
  double expected_draft_ = 0;
  double expected_verify_ = 0;
  double table_verify_ = 0;
  std::vector<PlanStats> chosen_;
};

}  // namespace verbatim
