#include "speculation/planner.h"

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"

namespace verbatim {

namespace {

/// The number of steps in which a plan is measured before n-grams may draft in its stead. Where its drafts
/// are long, the plan is faster than is expected at first, and no step would show it while n-grams win.
constexpr int64_t kFirstUses = 6;
/// The largest share of all time that trials of losing plans may cost.
constexpr double kTrialShare = 0.02;
/// The factor by which another plan's rate must exceed that of plain decoding, whose rate is better known.
constexpr double kMargin = 1.03;
/// The path probability below which a node of n-grams is not offered to a batch.
constexpr float kLeastOffered = 0.05f;
/// The path probability below which a node of an inner draft is not offered to a shared drafting pass.
constexpr float kLeastInner = 0.1f;
/// The factor by which the expected rate of n-grams alone must exceed that of a network. A network that has
/// them inside finds their mistakes for the price of a draft pass.
constexpr double kNgramMargin = 1.25;
/// The most nodes of a draft by which an inner drafter helps an outer one.
constexpr int32_t kMostInnerNodes = 7;

/// The time of a draft model's pass relative to a pass of the model, while it is not known.
constexpr double kUnknownShare = 0.03;

/// The number of rows at which the cost of one more row of n-grams is looked up.
constexpr int64_t kUsualRows = 12;

/// The last first child of a chain that may have siblings behind it.
int32_t last_of_chain(const Draft& draft) {
  int32_t last = DraftNode::kRoot;
  for (int32_t i = 0; i < draft.size(); ++i) {
    if (draft.nodes[static_cast<size_t>(i)].rank == 0) last = i;
  }
  return last;
}

std::string_view kind_name(DraftLevel::Kind kind) {
  switch (kind) {
    case DraftLevel::Kind::kSelf:
      return "self";
    case DraftLevel::Kind::kModel:
      return "model";
    case DraftLevel::Kind::kNgram:
      return "ngram";
  }
  return "";
}

float threshold(double value) {
  return static_cast<float>(std::clamp(value, 0.01, 0.98));
}

}  // namespace

Planner::Planner(const Recipe& recipe, DrafterStack& drafters, PlanningCosts costs)
    : recipe_(recipe), drafters_(&drafters), costs_(std::move(costs)) {
  for (const DraftLevel& level : recipe_.levels) calibrations_.push_back(initial_calibration(level));
  add_plan(std::nullopt, std::nullopt);
  for (size_t i = 0; i < recipe_.levels.size(); ++i) {
    const DraftLevel::Kind kind = recipe_.levels[i].kind;
    if (kind == DraftLevel::Kind::kNgram) {
      ngrams_ = i;
      continue;
    }
    add_plan(i, std::nullopt);
    if (kind != DraftLevel::Kind::kSelf) continue;
    for (size_t inner = i + 1; inner < recipe_.levels.size(); ++inner) {
      if (recipe_.levels[inner].kind != DraftLevel::Kind::kSelf) add_plan(i, inner);
    }
  }
  for (size_t i = 0; i < recipe_.levels.size(); ++i) {
    NeuralDrafter* const network = drafters_->network(i);
    if (network != nullptr && costs_.levels[i]) network->set_costs(*costs_.levels[i]);
  }
  begin();
}

void Planner::add_plan(std::optional<size_t> outer, std::optional<size_t> inner) {
  Plan plan;
  plan.name = outer ? std::string(kind_name(recipe_.levels[*outer].kind)) : "plain";
  plan.outer = outer;
  plan.inner = inner;
  plan.tokens = 1.0;
  plan.seconds = costs_.target.of(1);
  if (inner) {
    plan.name += " <- " + std::string(kind_name(recipe_.levels[*inner].kind));
    plan.inner_calibration = initial_calibration(recipe_.levels[*inner]);
  }
  if (outer) guess(plan);
  plans_.push_back(plan);
}

void Planner::begin() {
  chosen_.clear();
  for (const Plan& plan : plans_) chosen_.push_back({plan.name, 0});
  if (ngrams_) chosen_.push_back({"ngram", 0});
  expected_draft_ = 0;
  expected_verify_ = 0;
  table_verify_ = 0;
}

const PassCosts* Planner::drafting_costs() const {
  for (const std::optional<PassCosts>& level : costs_.levels) {
    if (level) return &*level;
  }
  return nullptr;
}

double Planner::pass_seconds(size_t level) const {
  // N-grams are free. The passes of a model with another vocabulary are not measured beforehand, but in use.
  if (recipe_.levels[level].kind == DraftLevel::Kind::kNgram) return 0.0;
  return costs_.levels[level] ? costs_.levels[level]->of(1) : costs_.target.of(1) * kUnknownShare;
}

size_t Planner::best_plan() const {
  size_t best = 0;
  for (size_t i = 1; i < plans_.size(); ++i) {
    const double margin = best == 0 ? kMargin : 1.0;
    if (plans_[i].rate() > margin * plans_[best].rate()) best = i;
  }
  return best;
}

/// The best plan that drafts with a network, if there is one. A network that can have n-grams inside is never
/// used alone: a batch takes no rows of theirs that are not worth their time. Passes of another model are not
/// declined, so plans with one must be better than plain decoding.
std::optional<size_t> Planner::best_network() const {
  std::optional<size_t> best;
  for (size_t i = 1; i < plans_.size(); ++i) {
    const bool takes_ngrams = std::any_of(plans_.begin(), plans_.end(), [&](const Plan& other) {
      return ngrams_ && other.outer == plans_[i].outer && other.inner == ngrams_;
    });
    if (takes_ngrams && !plans_[i].inner) continue;
    const bool has_model = is_model(plans_[i].outer) || is_model(plans_[i].inner);
    if (has_model && plans_[i].rate() <= kMargin * plans_.front().rate()) continue;
    if (!best || plans_[i].rate() > plans_[*best].rate()) best = i;
  }
  return best;
}

/// The best plan, or the one whose trial is most overdue.
size_t Planner::pick() const {
  const size_t best = best_plan();
  if (lost_ > kTrialShare * seconds_) return best;
  size_t due = best;
  double most = 1.0;
  for (size_t i = 0; i < plans_.size(); ++i) {
    // Where drafts gain much, nothing is learnt from going without.
    if (i == best || (i == 0 && plans_[best].rate() > 1.5 * plans_[0].rate())) continue;
    const double overdue = static_cast<double>(plans_[i].unused) / static_cast<double>(plans_[i].interval);
    if (overdue < most) continue;
    most = overdue;
    due = i;
  }
  return due;
}

DraftLimits Planner::outer_limits(const Plan& plan) const {
  const double rate = plans_[best_plan()].rate();
  const double row = costs_.target.row_near(std::lround(plan.rows) + certain_);
  DraftLimits limits = limits_of(recipe_.levels[*plan.outer]);
  limits.path_threshold = threshold(rate * (plan.draft_seconds + row) / calibrations_[*plan.outer].mean());
  limits.leaf_threshold = threshold(rate * row);
  return limits;
}

DraftLimits Planner::inner_limits(const Plan& plan) const {
  // The cost of one more row among the first few, relative to the cost of a drafted token of this plan.
  const PassCosts& outer = *costs_.levels[*plan.outer];
  const double row = (outer.of(4) - outer.of(2)) / 2.0;
  DraftLimits limits = limits_of(recipe_.levels[*plan.inner]);
  limits.path_threshold = threshold((pass_seconds(*plan.inner) + row) / plan.draft_seconds);
  limits.leaf_threshold = threshold(row / plan.draft_seconds);
  // A pass of the outer drafter over a few rows costs little more than one over a single row; a pass over
  // many rows does cost more.
  limits.nodes = std::min(limits.nodes, kMostInnerNodes);
  // A batch chooses among them when it knows the rows of all.
  if (batch_ > 1) limits.path_threshold = limits.leaf_threshold = kLeastInner;
  return limits;
}

/// Whether a plan is known well enough, so that nothing is learnt from using it where n-grams are expected to
/// be faster.
bool Planner::known(const Plan& plan) const {
  if (!plan.outer) return true;
  if (plan.uses < kFirstUses) return false;
  return plan.unused < kOftenest || lost_ > kTrialShare * seconds_;
}

/// Asks the n-grams for their draft. It costs nothing and, used or not, it trains the calibration of n-grams.
/// Nodes that are less likely than `least` are left out.
void Planner::propose_ngrams(Sequence& sequence, Sampler& sampler, int64_t room, float least) {
  ngram_draft_.clear();
  if (!ngrams_) return;
  DraftLimits limits = limits_of(recipe_.levels[*ngrams_]);
  limits.path_threshold = least;
  limits.leaf_threshold = least;
  ngram_draft_.calibration = &calibrations_[*ngrams_];
  const Stopwatch watch(seconds_ngrams_);
  drafters_->level(*ngrams_).propose(sequence, sampler, limits, room, ngram_draft_);
}

/// Makes the draft of the n-grams the draft of this step.
void Planner::take_ngrams(Draft& draft) {
  current_ = plans_.size();
  ngrams_offered_ = true;
  draft.nodes = ngram_draft_.nodes;
  draft.unsure = ngram_draft_.unsure;
}

/// The rate of a step of the plan behind this step's certain tokens. Other rates leave such tokens out: they
/// come with whatever step, so they are no reason to take one plan or another.
double Planner::rate_after_certain(const Plan& plan) const {
  const int64_t rows = plan.outer ? std::lround(plan.rows) : 1;
  const double seconds = plan.seconds + costs_.target.of(rows + certain_) - costs_.target.of(rows);
  return (plan.tokens + static_cast<double>(certain_)) / seconds;
}

/// Forgets the drafts of the step before.
void Planner::begin_step(int64_t certain) {
  certain_ = certain;
  ngram_draft_.clear();
  outer_draft_.clear();
  ngrams_offered_ = false;
  seconds_ngrams_ = 0;
  seconds_outer_ = 0;
  passed_over_ = 0;
  current_ = 0;
}

bool Planner::is_model(std::optional<size_t> level) const {
  return level && recipe_.levels[*level].kind == DraftLevel::Kind::kModel;
}

/// Fills outer_draft_ with what the network of a plan drafts.
void Planner::draft_with_network(const Plan& plan, DraftLimits limits, Sequence& sequence, Sampler& sampler,
                                 int64_t room) {
  Drafter& drafter = drafters_->level(*plan.outer);
  NeuralDrafter* const network = drafters_->network(*plan.outer);
  // The first use of a plan that was never measured must not cost much.
  const bool unmeasured = is_model(plan.outer) && network == nullptr && plan.uses == 0;
  if (unmeasured) limits.length = std::min(limits.length, 2);
  if (plan.inner) {
    network->set_inner(&drafters_->level(*plan.inner), inner_limits(plan),
                       &plans_[current_].inner_calibration);
  } else if (network != nullptr) {
    network->set_inner(nullptr, {}, nullptr);
  }
  outer_draft_.calibration = &calibrations_[*plan.outer];
  passes_before_ = drafter.stats.passes;
  const Stopwatch watch(seconds_outer_);
  drafter.propose(sequence, sampler, limits, room, outer_draft_);
}

void Planner::propose(Sequence& sequence, Sampler& sampler, int64_t room, int64_t certain, Draft& draft) {
  begin_step(certain);
  if (room < 1) return;
  const size_t best = best_plan();
  const double rate = plans_[best].rate();
  current_ = pick();
  propose_ngrams(sequence, sampler, room, threshold(rate * costs_.target.row(kUsualRows)));
  const Plan& plan = plans_[current_];
  const bool model = is_model(plan.outer);
  // A small model's tree has room for them.
  if (!model && current_ == best && ngram_draft_.size() > 0) {
    const double promise = (expected_tokens(ngram_draft_) + static_cast<double>(certain_)) /
                           costs_.target.of(ngram_draft_.size() + 1 + certain_);
    if (promise > (plan.outer ? kNgramMargin : kMargin) * rate_after_certain(plan)) {
      if (known(plan)) {
        take_ngrams(draft);
        prune(draft, rate);
        return;
      }
      passed_over_ = promise;
    }
  }
  if (!plan.outer) return;
  draft_with_network(plan, outer_limits(plan), sequence, sampler, room);
  draft.nodes = outer_draft_.nodes;
  draft.unsure = outer_draft_.unsure;
  ngrams_offered_ = model;
  if (model) draft.merge(ngram_draft_);
  prune(draft, rate);
}

void Planner::propose_shared(Sequence& sequence, Sampler& sampler, int64_t room, int64_t certain,
                             const PassRunner::KeepThresholds& keep, Draft& draft) {
  begin_step(certain);
  if (room < 1) return;
  propose_ngrams(sequence, sampler, room, kLeastOffered);
  const std::optional<size_t> best = best_network();
  if (best) {
    current_ = *best;
    const Plan& plan = plans_[current_];
    ngrams_offered_ = is_model(plan.outer);
    DraftLimits limits = outer_limits(plan);
    if (!ngrams_offered_) limits.path_threshold = static_cast<float>(keep.path);
    limits.leaf_threshold = static_cast<float>(keep.leaf);
    limits.may_decline = true;
    limits.keeps_inner = true;
    draft_with_network(plan, limits, sequence, sampler, room);
    draft.nodes = outer_draft_.nodes;
    draft.unsure = outer_draft_.unsure;
    if (ngrams_offered_) draft.merge(ngram_draft_);
    const NeuralDrafter* const network = drafters_->network(*plan.outer);
    const Draft* const undecided = network != nullptr ? network->undecided() : nullptr;
    // N-grams alone have more to say than those inside.
    const bool grafts = undecided != nullptr && (draft.size() > 0 || plan.inner != ngrams_);
    if (grafts) draft.graft(*undecided, last_of_chain(draft));
  }
  if (draft.nodes.empty()) {
    current_ = 0;
    if (ngram_draft_.size() > 0) take_ngrams(draft);
  }
  draft.order_by_path();
}

/// Leaves out the last nodes, which are the least likely ones, if their rows cost more than they are expected
/// to gain: a row is dear where it takes one more tile.
void Planner::prune(Draft& draft, double rate) const {
  draft.order_by_path();
  double tokens = 1.0;
  double best = tokens - rate * costs_.target.of(1 + certain_);
  size_t keep = 0;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    tokens += draft.nodes[i].path;
    const double gain = tokens - rate * costs_.target.of(static_cast<int64_t>(i) + 2 + certain_);
    if (gain < best) continue;
    best = gain;
    keep = i + 1;
  }
  draft.nodes.resize(keep);
}

/// The expected number of tokens of a step with a draft.
double Planner::expected_tokens(const Draft& draft) {
  double tokens = 1.0;
  for (const DraftNode& node : draft.nodes) tokens += node.path;
  return tokens;
}

}  // namespace verbatim
