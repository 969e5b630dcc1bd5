#include "speculation/speculator.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace verbatim {

namespace {

/// The most tokens that a step drafts of the only text that a structure leaves.
constexpr int64_t kMostForced = 32;
/// The confidence of a token of such a text that is not the only one allowed.
constexpr float kGuessConfidence = 0.5f;

/// The depth of the deepest node; -1 for an empty draft.
int32_t deepest(const Draft& draft) {
  int32_t depth = -1;
  for (const DraftNode& node : draft.nodes) depth = std::max(depth, node.depth);
  return depth;
}

/// Puts tokens at the end of a sequence until the end of a scope.
class Assumed {
 public:
  Assumed(Sequence& sequence, std::span<const int32_t> tokens)
      : sequence_(sequence), known_(sequence.tokens.size()) {
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  }
  ~Assumed() { sequence_.tokens.resize(known_); }
  Assumed(const Assumed&) = delete;
  Assumed& operator=(const Assumed&) = delete;

 private:
  Sequence& sequence_;
  size_t known_;
};

}  // namespace

Speculator::Speculator(const Recipe& recipe, std::unique_ptr<DrafterStack> drafters, Evaluator& evaluator,
                       std::optional<PlanningCosts> costs)
    : recipe_(recipe),
      verifying_(parse_reading(recipe.reading, "recipe " + recipe.name)),
      drafters_(std::move(drafters)),
      evaluator_(&evaluator) {
  if (recipe_.plain()) return;
  if (recipe_.planned && costs) {
    planner_.emplace(recipe_, *drafters_, std::move(*costs));
    evaluator_->runner().plan_by(planner_->verification_costs(), planner_->drafting_costs());
  } else if (recipe_.levels.front().breadth == 1) {
    // Only chains are calibrated. Calibrated probabilities would change which siblings a tree has even while
    // its sequence decodes alone, where the stop rule of the recipe should hold as it is.
    calibration_ = initial_calibration(recipe_.levels.front());
  }
  limits_ = limits_of(recipe_.levels.front());
  limits_.drop_unsure = recipe_.acceptance == Recipe::Acceptance::kBild;
  draft_.want_distributions = recipe_.acceptance == Recipe::Acceptance::kRejection;
}

void Speculator::begin(const SamplingOptions& sampling, Constraint constraint) {
  sampler_ = Sampler(sampling, std::move(constraint));
  assumed_accepted_ = 0;
  structure_alone_ = 0;
  drafters_->reset_stats();
  if (planner_) planner_->begin();
}

void Speculator::set_batch(int64_t sequences) {
  shared_ = sequences > 1;
  if (planner_) planner_->set_batch(sequences);
}

/// The stop rule of the next step: the recipe's, or in a batch one made from the pace of the batch. Under a
/// lossy rule of acceptance the drafts decide the text, so there the recipe's stop rule always holds.
DraftLimits Speculator::limits() const {
  DraftLimits limits = limits_;
  if (!shared_ || !recipe_.lossless()) return limits;
  const PassRunner::KeepThresholds keep = evaluator_->runner().keep_thresholds();
  limits.may_decline = true;
  if (keep.path <= 0.0) return limits;
  limits.threshold = 0.0f;
  limits.path_threshold = static_cast<float>(keep.path);
  limits.leaf_threshold = static_cast<float>(keep.leaf);
  return limits;
}

/// Whether the next step may draft: for a sequence alone always, in a batch while drafts gain by what the
/// batch has measured. Under a lossy rule of acceptance the drafts decide the text, so there a step always
/// may.
bool Speculator::may_draft() const {
  return !shared_ || !recipe_.lossless() || evaluator_->runner().gains_by_drafts();
}

bool Speculator::prefill(Sequence& sequence, int64_t chunk, Stats& stats) {
  const Stopwatch watch(stats.seconds_prefill);
  const auto length = static_cast<int64_t>(sequence.tokens.size());
  // Where the cache holds all tokens already (a sequence that was truncated), the last token is evaluated
  // once more for its logits.
  const int64_t first = std::min(sequence.cache->length(), length - 1);
  const int64_t end = std::min({length, first + chunk, first + sequence.cache->most_rows()});
  const bool last = end == length;
  const std::span<const int32_t> tokens(sequence.tokens.data(), static_cast<size_t>(end));
  const Matrix<const float> logits =
      evaluator_->evaluate(tokens, first, last ? 1 : 0, verifying_, *sequence.cache);
  stats.prompt_tokens += end - first;
  sequence.cache->set_length(end);
  if (!last) return false;
  const int32_t token = sampler_.sample(logits.row_span(0), length, sequence.tokens);
  scores_.add(logits.row_span(0), token);
  if (origins_ != nullptr) origins_->emplace_back();
  sequence.tokens.push_back(token);
  drafters_->observe(sequence);
  return true;
}

/// Asks the recipe's drafters, as if the sequence ended with the tokens `certain` already, and puts these
/// before their draft.
void Speculator::propose_after(std::span<const int32_t> certain, Sequence& sequence, int64_t room,
                               Stats& stats) {
  {
    const Assumed assumed(sequence, certain);
    propose(sequence, room - std::ssize(certain), std::ssize(certain), stats);
  }
  if (draft_.size() > 0) draft_.put_before(certain, TokenOrigin::kStructure);
}

/// Fills draft_ with what the recipe's drafters propose for the sequence, whose last `certain` tokens are yet
/// to be verified.
void Speculator::propose(Sequence& sequence, int64_t room, int64_t certain, Stats& stats) {
  draft_.calibration = calibration_ ? &*calibration_ : nullptr;
  if (drafters_->size() == 0) return;
  if (planner_) {
    double all = 0.0;
    {
      const Stopwatch watch(all);
      PassRunner& runner = evaluator_->runner();
      const int64_t most = may_draft() ? room : 0;
      if (shared_ && runner.chooses()) {
        planner_->propose_shared(sequence, sampler_, most, certain, runner.keep_thresholds(), draft_);
      } else {
        planner_->propose(sequence, sampler_, most, certain, draft_);
      }
    }
    stats.seconds_draft += planner_->seconds_drafting();
    stats.seconds_planning += all - planner_->seconds_drafting();
  } else if (room > 0 && may_draft()) {
    const Stopwatch watch(stats.seconds_draft);
    drafters_->level(0).propose(sequence, sampler_, limits(), room, draft_);
  }
}

/// Finds the only text that the structure leaves; none for a recipe without drafters.
ForcedTokens Speculator::find_forced(const Sequence& sequence, int64_t room, Stats& stats) {
  if (drafters_->size() == 0 || room < 1) return {};
  const Stopwatch watch(stats.seconds_draft);
  const int64_t most = std::min({room, kMostForced, sequence.cache->most_rows() - 1});
  return sampler_.forced(sequence.tokens, static_cast<size_t>(std::max<int64_t>(most, 0)));
}

/// Makes the tokens of the only text that the structure leaves the draft of the step.
void Speculator::draft_forced(const ForcedTokens& forced) {
  draft_.calibration = nullptr;
  int32_t parent = DraftNode::kRoot;
  for (size_t i = 0; i < forced.tokens.size(); ++i) {
    const float confidence = i < forced.certain ? 1.0f : kGuessConfidence;
    parent = draft_.add(forced.tokens[i], parent, confidence, 0, TokenOrigin::kStructure);
  }
}

void Speculator::step(Sequence& sequence, int64_t budget, Stats& stats) {
  const auto known = static_cast<int64_t>(sequence.tokens.size());
  const double drafted_before = stats.seconds_draft;
  const double verified_before = stats.seconds_verify;
  const int64_t passes_before = draft_passes();
  const ForcedTokens forced = find_forced(sequence, budget - 1, stats);
  const auto certain = static_cast<int64_t>(forced.certain);
  const bool asked = certain == 0 || !sampler_.ends(forced.tokens[forced.certain - 1]);
  draft_.clear();
  if (asked) propose_after(std::span(forced.tokens).first(forced.certain), sequence, budget - 1, stats);
  const bool drafted = draft_.size() > 0;
  if (!drafted) draft_forced(forced);
  Matrix<const float> logits;
  {
    const Stopwatch watch(stats.seconds_verify);
    logits = planner_ && shared_ && drafted
                 ? evaluator_->evaluate_worthwhile(sequence.tokens, known - 1, certain, draft_, verifying_,
                                                   *sequence.cache)
                 : evaluator_->evaluate(sequence.tokens, known - 1, draft_, verifying_, *sequence.cache);
  }
  Verdict verdict;
  {
    const Stopwatch watch(stats.seconds_sampling);
    verdict = accept(recipe_, draft_, logits, *evaluator_, sampler_, sequence.tokens, scores_);
    evaluator_->keep(verdict.last, *sequence.cache);
    sequence.cache->set_length(static_cast<int64_t>(sequence.tokens.size()) - 1);
  }
  const Stopwatch watch(stats.seconds_planning);
  drafters_->observe(sequence);
  evaluator_->runner().observe_step(verdict.kept);
  // What the structure drafted says nothing of the recipe's drafters.
  if (drafted && draft_.size() > certain && verdict.kept >= certain) {
    evaluator_->runner().observe_draft(verdict.kept - certain, verdict.kept <= deepest(draft_));
  }
  const auto appended = std::span(sequence.tokens).subspan(static_cast<size_t>(known));
  if (origins_ != nullptr) add_origins(appended);
  if (steps_ != nullptr) {
    steps_->push_back({.position = known,
                       .drafted = draft_.size(),
                       .accepted = verdict.kept,
                       .draft_passes = draft_passes() - passes_before,
                       .rows = draft_.size() + 1});
  }
  if (calibration_ && drafted) update_calibration(draft_, appended, *calibration_, certain);
  if (planner_ && asked) {
    planner_->learn(draft_, appended, stats.seconds_draft - drafted_before,
                    stats.seconds_verify - verified_before, evaluator_->runner().last_pass());
  }
  assumed_accepted_ += drafted ? std::min<int64_t>(verdict.kept, certain) : verdict.kept;
  structure_alone_ += asked ? 0 : 1;
  count(verdict, stats);
}

/// Says of the tokens that a step appended which of them its draft had.
void Speculator::add_origins(std::span<const int32_t> appended) {
  int32_t at = DraftNode::kRoot;
  for (const int32_t token : appended) {
    const int32_t kept = draft_.child(at, token);
    const int32_t shown = kept != DraftNode::kRoot ? kept : draft_.first_child(at);
    TokenOrigin& origin = origins_->emplace_back();
    if (shown == DraftNode::kRoot) continue;  // the last one, after a whole draft
    const DraftNode& node = draft_.nodes[static_cast<size_t>(shown)];
    origin = {.kind = shown == kept ? TokenOrigin::Kind::kDrafted : TokenOrigin::Kind::kCorrected,
              .level = node.level,
              .confidence = node.confidence};
    at = kept;
  }
}

/// The passes of all drafters since begin().
int64_t Speculator::draft_passes() const {
  int64_t passes = 0;
  for (size_t i = 0; i < drafters_->size(); ++i) passes += drafters_->level(i).stats.passes;
  return passes;
}

/// Adds the outcome of a step to the statistics.
void Speculator::count(const Verdict& verdict, Stats& stats) const {
  ++stats.target_passes;
  stats.drafted += draft_.size();
  stats.accepted += verdict.kept;
  stats.fallbacks += draft_.unsure ? 1 : 0;
  stats.rollbacks += verdict.rejected ? 1 : 0;
  const auto kept = static_cast<size_t>(verdict.kept);
  const auto depths = static_cast<size_t>(deepest(draft_) + 1);
  if (stats.depths.size() < depths) stats.depths.resize(depths);
  if (stats.lengths.size() < kept + 1) stats.lengths.resize(kept + 1);
  for (size_t d = 0; d < depths; ++d) {
    ++stats.depths[d].drafted;
    stats.depths[d].accepted += d < kept ? 1 : 0;
  }
  ++stats.lengths[kept];
  const auto structured = [this](int32_t node) {
    return draft_.nodes[static_cast<size_t>(node)].level == TokenOrigin::kStructure;
  };
  int64_t by_structure = 0;
  for (int32_t node = 0; node < draft_.size(); ++node) by_structure += structured(node) ? 1 : 0;
  stats.structure_steps += by_structure > 0 ? 1 : 0;
  stats.structure_drafted += by_structure;
  for (int32_t node = verdict.last; node != DraftNode::kRoot;
       node = draft_.nodes[static_cast<size_t>(node)].parent) {
    stats.structure_accepted += structured(node) ? 1 : 0;
  }
}

void Speculator::end(Stats& stats) const {
  if (drafters_->size() == 0) return;
  stats.levels.resize(drafters_->size());
  stats.draft_passes = draft_passes();
  stats.diagnostics = {};
  for (size_t i = 0; i < drafters_->size(); ++i) {
    stats.levels[i] = drafters_->level(i).stats;
    stats.levels[i].level = recipe_.levels[i];
    stats.diagnostics.seconds_draft_passes += stats.levels[i].diagnostics.seconds_passes;
    stats.diagnostics.table_draft += stats.levels[i].diagnostics.table_seconds;
  }
  if (!planner_) {
    stats.levels.front().accepted = stats.accepted - assumed_accepted_;
    return;
  }
  stats.plans = planner_->chosen();
  if (structure_alone_ > 0) stats.plans.push_back({"structure", structure_alone_});
  stats.diagnostics.expected_draft = planner_->expected_draft();
  stats.diagnostics.expected_verify = planner_->expected_verify();
  stats.diagnostics.table_verify = planner_->table_verify();
}

}  // namespace verbatim
