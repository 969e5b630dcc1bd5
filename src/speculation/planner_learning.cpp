#include "speculation/planner.h"

#include <algorithm>
#include <cmath>

namespace verbatim {

namespace {

/// The weight of one step in the averages of the plan that it used.
constexpr double kRate = 0.15;
/// The largest number of steps between two trials of a losing plan.
constexpr int64_t kRarest = 256;
/// The factor to which the time of a step is limited, relative to the expected time: a step that took longer
/// was interrupted.
constexpr double kLongestStep = 4.0;

/// Guesses until a plan has been measured: the probability that a drafted token is kept, if the calibration
/// does not promise more, the longest draft, and the factor by which an inner drafter speeds up the outer
/// one.
constexpr double kFirstKept = 0.8;  // rather too much: a plan that is never used cannot disappoint
constexpr int32_t kFirstLength = 8;
constexpr double kInnerGain = 1.6;

int32_t depth_of(const Draft& draft) {
  int32_t deepest = 0;
  for (const DraftNode& node : draft.nodes) deepest = std::max(deepest, node.depth + 1);
  return deepest;
}

}  // namespace

/// Whether a plan drafts and all that is known of it is a guess: no plan with its outer drafter was used.
bool Planner::guessed(const Plan& plan) const {
  return plan.outer && std::none_of(plans_.begin(), plans_.end(), [&](const Plan& other) {
           return other.outer == plan.outer && other.uses > 0;
         });
}

/// The seconds that a drafted token of a plan takes, by the costs of passes alone.
double Planner::drafted_token_seconds(const Plan& plan) const {
  return pass_seconds(*plan.outer) / (plan.inner ? kInnerGain : 1.0);
}

/// Guesses what a step of an unused plan gives and takes, by the costs of passes and the initial calibration:
/// a chain of the length that promises the most tokens per second.
void Planner::guess(Plan& plan) const {
  const DraftLevel& level = recipe_.levels[*plan.outer];
  const double kept = std::max<double>(calibrations_[*plan.outer].mean(), kFirstKept);
  plan.draft_seconds = drafted_token_seconds(plan);
  plan.step_seconds = FadingLine(pass_seconds(*plan.outer));
  double tokens = 1.0;
  double path = 1.0;
  for (int32_t length = 1; length <= std::min(level.length, kFirstLength); ++length) {
    path *= kept;
    tokens += path;
    const double seconds = costs_.target.of(length + 1) + plan.draft_seconds * length;
    if (length > 1 && tokens / seconds <= plan.rate()) continue;
    plan.tokens = tokens;
    plan.seconds = seconds;
    plan.rows = length + 1;
    plan.passes = plan.inner ? length / kInnerGain : length;
  }
}

/// Guesses once more what unused plans give: the machine may be busier, or less so, than when the costs of
/// passes were measured. Levels none of whose passes has been timed are taken to be as slow as the model.
void Planner::guess_again() {
  for (std::optional<PassCosts>& level : costs_.levels) {
    if (level && !level->observed()) level->follow(costs_.target);
  }
  for (Plan& plan : plans_) {
    if (guessed(plan)) guess(plan);
  }
}

/// Gives a plan the seconds that a step of it takes in a batch of another size.
void Planner::expect(Plan& plan, double old_pass_seconds) const {
  if (!plan.outer) {
    plan.seconds = costs_.target.of(1);
    plan.measured = false;
    return;
  }
  const double pass = pass_seconds(*plan.outer);
  plan.draft_seconds *= pass / old_pass_seconds;
  plan.step_seconds = FadingLine(pass);
  plan.seconds = costs_.target.of(std::lround(plan.rows)) + plan.passes * pass;
}

void Planner::set_batch(int64_t sequences) {
  if (sequences == batch_) return;
  batch_ = sequences;
  std::vector<double> before(costs_.levels.size());
  for (size_t i = 0; i < before.size(); ++i) before[i] = pass_seconds(i);
  costs_.target.set_batch(sequences);
  for (std::optional<PassCosts>& level : costs_.levels) {
    if (level) level->set_batch(sequences);
  }
  for (Plan& plan : plans_) {
    if (guessed(plan)) {
      guess(plan);
    } else {
      expect(plan, plan.outer ? before[*plan.outer] : 0.0);
    }
  }
}

/// Replaces the measured times of a step by what it costs if all sequences of the batch take such a step. A
/// measured time would include waiting for the drafts of other sequences.
void Planner::use_batch_costs(double& seconds_draft, double& seconds_verify, int64_t rows,
                              const PassRunner::PassTiming& verified) {
  // Most rows of a prompt have no logits, so their time says little of what rows of drafts cost.
  if (verified.rows > 0 && !verified.prompts) costs_.target.observe_pass(verified.rows, verified.seconds);
  for (std::optional<PassCosts>& level : costs_.levels) {
    if (level) level->follow(costs_.target);
  }
  seconds_verify = costs_.target.of(rows);
  seconds_draft = seconds_ngrams_;
  if (current_ == plans_.size() || !plans_[current_].outer) return;
  const size_t outer = *plans_[current_].outer;
  if (costs_.levels[outer]) seconds_outer_ = passes_of(outer) * costs_.levels[outer]->of(1);
  seconds_draft = seconds_ngrams_ + seconds_outer_;
}

/// Learns the rate of plain decoding: from a step of it, or else from the cost of a pass over one row.
void Planner::learn_plain(int64_t rows, double seconds_verify) {
  Plan& plain = plans_.front();
  if (rows == 1) {
    const double seconds = std::min(seconds_verify, kLongestStep * plain.seconds);
    plain.seconds += (plain.measured ? kRate : 1.0) * (seconds - plain.seconds);
    plain.measured = true;
  } else if (!plain.measured) {
    plain.seconds = costs_.target.of(1);
  }
}

/// Counts in the statistics of each level how many of its drafted tokens were appended.
void Planner::credit(std::span<const int32_t> appended) {
  const auto matched = [&](const Draft& draft) {
    int64_t count = 0;
    int32_t at = DraftNode::kRoot;
    // The last token is the model's own.
    for (const int32_t token : appended.first(appended.empty() ? 0 : appended.size() - 1)) {
      at = draft.child(at, token);
      if (at == DraftNode::kRoot) break;
      ++count;
    }
    return count;
  };
  if (current_ < plans_.size() && plans_[current_].outer) {
    drafters_->level(*plans_[current_].outer).stats.accepted += matched(outer_draft_);
  }
  if (!ngrams_) return;
  LevelStats& ngrams = drafters_->level(*ngrams_).stats;
  if (ngrams_offered_) {
    ngrams.accepted += matched(ngram_draft_);
  } else {
    ngrams.drafted -= ngram_draft_.size();  // nobody was shown them
  }
}

void Planner::learn(const Draft& draft, std::span<const int32_t> appended, double seconds_draft,
                    double seconds_verify, const PassRunner::PassTiming& verified) {
  const int64_t rows = draft.size() + 1;
  appended = appended.subspan(std::min(appended.size(), static_cast<size_t>(certain_)));
  if (batch_ > 1) use_batch_costs(seconds_draft, seconds_verify, rows, verified);
  // The rows of certain tokens come with any plan, as the tokens do.
  const double share = costs_.target.of(rows - certain_) / costs_.target.of(rows);
  const double seconds = seconds_draft + seconds_verify * share;
  const Plan& best = plans_[best_plan()];
  const bool trial =
      batch_ == 1 && current_ < plans_.size() && (&plans_[current_] != &best || passed_over_ > 0);
  const double otherwise = std::max(best.rate(), passed_over_);
  if (trial) lost_ += std::max(0.0, seconds - static_cast<double>(appended.size()) / otherwise);
  seconds_ += seconds_draft + seconds_verify;
  ++chosen_[current_].steps;
  credit(appended);
  expected_verify_ += costs_.target.of(rows);
  table_verify_ += costs_.target.table(std::max(verified.rows, rows));
  if (batch_ == 1) costs_.target.observe(rows, seconds_verify);
  learn_plain(rows, seconds_verify);
  for (Plan& plan : plans_) ++plan.unused;
  if (ngrams_) learn_ngrams(appended);
  if (current_ < plans_.size()) learn_plan(plans_[current_], draft, appended, seconds);
  guess_again();
}

void Planner::learn_ngrams(std::span<const int32_t> appended) {
  update_calibration(ngram_draft_, appended, calibrations_[*ngrams_]);
  expected_draft_ += ngram_seconds_;
  ngram_seconds_ += kRate * (seconds_ngrams_ - ngram_seconds_);
}

/// The passes of the last draft, counted as passes over one row of the same cost.
double Planner::passes_of(size_t level) const {
  const NeuralDrafter* const network = drafters_->network(level);
  if (network == nullptr || !costs_.levels[level]) {
    return static_cast<double>(drafters_->level(level).stats.passes - passes_before_);
  }
  const PassCosts& costs = *costs_.levels[level];
  double seconds = 0;
  for (const int64_t rows : network->pass_rows()) seconds += costs.of(rows);
  return seconds / costs.of(1);
}

/// Learns the time that the plan's drafter took, per pass and per drafted token.
void Planner::learn_drafting(Plan& plan, double rate) {
  const double passes = passes_of(*plan.outer);
  if (passes == 0) return;
  const double expected = plan.step_seconds.of(passes);
  const double seconds = std::min(seconds_outer_, kLongestStep * expected);
  expected_draft_ += expected;
  plan.step_seconds.observe(passes, seconds);
  const bool tree = recipe_.levels[*plan.outer].kind == DraftLevel::Kind::kModel;
  const auto tokens = static_cast<double>(tree ? outer_draft_.size() : depth_of(outer_draft_));
  if (tokens > 0) plan.draft_seconds += rate * (seconds / tokens - plan.draft_seconds);
  if (!plan.inner && costs_.levels[*plan.outer]) costs_.levels[*plan.outer]->observe(1, seconds / passes);
}

/// Learns from a step what its plan gives and takes.
void Planner::learn_plan(Plan& plan, const Draft& draft, std::span<const int32_t> appended,
                         double seconds_step) {
  plan.unused = 0;
  if (plan.outer) {
    // The first steps count more, since the averages before them are guesses.
    const double rate = std::max(kRate, 1.0 / static_cast<double>(++plan.uses + 1));
    learn_drafting(plan, rate);
    const int64_t rows = draft.size() + 1 - certain_;
    plan.rows += rate * (static_cast<double>(rows) - plan.rows);
    plan.passes += rate * (passes_of(*plan.outer) - plan.passes);
    // The average of the expected and of the appended tokens: the expectation is less noisy, the count is
    // true.
    const double expected = expected_tokens(draft) - static_cast<double>(certain_);
    const double tokens = 0.5 * expected + 0.5 * static_cast<double>(appended.size());
    const double seconds = std::min(seconds_step, kLongestStep * plan.seconds);
    plan.tokens += rate * (tokens - plan.tokens);
    plan.seconds += rate * (seconds - plan.seconds);
    learn_unused(plan, rows, rate);
    update_calibration(outer_draft_, appended, calibrations_[*plan.outer]);
  }
  if (batch_ == 1) plan.interval = current_ == best_plan() ? kOftenest : std::min(plan.interval * 2, kRarest);
}

/// Learns from a step of a plan what plans with the same outer drafter, which were never used, would have
/// taken: they propose the same tokens and differ in their time alone. `rows` is the number of rows of the
/// verification, `rate` the weight of the step.
void Planner::learn_unused(const Plan& used, int64_t rows, double rate) {
  const int32_t depth = depth_of(outer_draft_);
  for (Plan& other : plans_) {
    if (other.outer != used.outer || other.uses > 0) continue;
    // Without n-grams inside, the outer drafter would have needed one pass for each token.
    const bool alone = !other.inner && used.inner && used.inner == ngrams_;
    other.draft_seconds = drafted_token_seconds(other);
    const double drafting = alone ? used.step_seconds.of(depth) : other.draft_seconds * depth;
    other.tokens = used.tokens;
    other.rows = used.rows;
    other.seconds += rate * (costs_.target.of(rows) + drafting - other.seconds);
  }
}

}  // namespace verbatim
