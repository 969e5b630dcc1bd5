#include "drafting/neural_drafter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stopwatch.h"

namespace verbatim {

namespace {

/// Rows per pass when a cache catches up with a prompt.
int64_t catch_up_rows(const KvCache& cache) {
  return std::min<int64_t>(512, cache.most_rows());
}

/// The share of drafted tokens that verification is assumed to keep while no calibration says.
constexpr double kUsuallyKept = 0.7;
/// The probability with which this drafter, too, proposes a token of the inner draft that the model keeps.
constexpr double kAgrees = 0.98;

/// Restores the verified tokens and cache length of a sequence at the end of a scope.
class Verified {
 public:
  explicit Verified(Sequence& sequence)
      : sequence_(sequence), tokens_(sequence.tokens.size()), length_(sequence.cache->length()) {}
  ~Verified() {
    sequence_.tokens.resize(tokens_);
    sequence_.cache->set_length(length_);
  }
  Verified(const Verified&) = delete;
  Verified& operator=(const Verified&) = delete;

 private:
  Sequence& sequence_;
  size_t tokens_;
  int64_t length_;
};

const auto kLessLikely = [](const auto& a, const auto& b) { return a.path < b.path; };

}  // namespace

int64_t DraftCache::first_unknown(const Sequence& sequence) {
  const auto last = static_cast<int64_t>(sequence.tokens.size()) - 1;
  if (!own_) return std::min(sequence.cache->length(), last);
  const auto end = sequence.tokens.begin() + std::min<int64_t>(last, static_cast<int64_t>(held_.size()));
  const auto differs = std::mismatch(sequence.tokens.begin(), end, held_.begin()).second;
  held_.erase(differs, held_.end());
  return static_cast<int64_t>(held_.size());
}

void DraftCache::hold(Sequence& sequence) {
  if (own_) {
    hold_own(sequence.tokens);
  } else {
    sequence.cache->set_length(static_cast<int64_t>(sequence.tokens.size()) - 1);
  }
}

void DraftCache::hold_own(const std::vector<int32_t>& tokens) {
  const auto end = tokens.end() - 1;
  const auto [differs, from] = std::mismatch(held_.begin(), held_.end(), tokens.begin(), end);
  held_.erase(differs, held_.end());
  held_.insert(held_.end(), from, end);
}

void NeuralDrafter::propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
                            Draft& draft) {
  const Stopwatch watch(stats.seconds);
  const Verified back(sequence);
  pass_rows_.clear();
  declined_ = false;
  const int64_t most = std::min<int64_t>(limits.length, room);
  if (!knows(sequence)) return;
  if (grow_trees_ && inner_ == nullptr && limits.breadth > 1) {
    propose_tree(sequence, sampler, limits, most, draft);
  } else {
    propose_chain(sequence, sampler, limits, most, draft);
  }
  stats.drafted += draft.size();
}

/// Whether this drafter's model has all tokens that it would have to evaluate. The model that it drafts for
/// may have a larger vocabulary, padded with tokens that this one lacks.
bool NeuralDrafter::knows(const Sequence& sequence) {
  const auto first = sequence.tokens.begin() + cache_.first_unknown(sequence);
  const int32_t vocabulary = evaluator_->decoder().config().vocab_size;
  return std::all_of(first, sequence.tokens.end(), [&](int32_t token) { return token < vocabulary; });
}

void NeuralDrafter::observe(const Sequence& sequence) {
  // A prompt is evaluated now, so that the first draft does not take the time of it.
  KvCache* const own = cache_.own();
  const std::span<const int32_t> tokens(sequence.tokens.data(), sequence.tokens.size() - 1);
  if (view_ != nullptr) show(tokens, *sequence.cache);
  const int64_t first = own == nullptr ? 0 : cache_.first_unknown(sequence);
  if (own == nullptr || static_cast<int64_t>(tokens.size()) - first < kPromptTokens || !knows(sequence))
    return;
  take_in(tokens, first, *own);
  cache_.hold_own(sequence.tokens);
}

/// Tells the view which tokens the cache holds and, if the view asks for them, shows it the queries of the
/// last tokens. Evaluating these tokens again writes the bits into the cache that are there already.
void NeuralDrafter::show(std::span<const int32_t> tokens, KvCache& cache) {
  const int64_t rows = view_->follow(tokens, cache);
  if (rows == 0) return;
  PassKind kind(verifying_);
  kind.drafts = true;
  kind.observer = view_.get();
  try {
    evaluator_->evaluate(tokens, static_cast<int64_t>(tokens.size()) - rows, 0, kind, cache);
  } catch (...) {
    view_->follow({}, cache);  // it has not seen what it asked for
    throw;
  }
}

/// Evaluates the tokens from `first` on for their keys and values alone.
void NeuralDrafter::take_in(std::span<const int32_t> tokens, int64_t first, KvCache& cache) {
  const int64_t rows = catch_up_rows(cache);
  for (; first < static_cast<int64_t>(tokens.size()); first += rows) {
    const size_t end = std::min(tokens.size(), static_cast<size_t>(first + rows));
    evaluator_->evaluate(tokens.first(end), first, 0, kind_, cache);
  }
}

/// Evaluates the tokens from `first` on and a draft after them, a long prompt in several passes. Returns no
/// logits if the pass was declined; drafting then ends.
Matrix<const float> NeuralDrafter::evaluate(Sequence& sequence, int64_t first, Draft& following) {
  const std::span<const int32_t> tokens = sequence.tokens;
  KvCache& cache = cache_.of(sequence);
  const int64_t step = catch_up_rows(cache);
  const int64_t early = (static_cast<int64_t>(tokens.size()) - first - 1) / step * step;
  take_in(tokens.first(static_cast<size_t>(first + early)), first, cache);
  first += early;
  const Matrix<const float> logits =
      evaluator_->evaluate_worthwhile(tokens, first, 0, following, kind_, cache);
  declined_ = logits.rows == 0;
  if (declined_) return logits;
  ++stats.passes;
  const int64_t rows = std::ssize(tokens) - first + following.size();
  pass_rows_.push_back(rows);
  if (costs_ != nullptr) {
    const PassRunner::PassTiming pass = evaluator_->runner().last_pass();
    stats.diagnostics.table_seconds += costs_->table(pass.rows);
    stats.diagnostics.seconds_passes += pass.seconds;
  }
  return logits;
}

void NeuralDrafter::own_head(std::shared_ptr<const LinearWeight> head, std::vector<int32_t> tokens) {
  head_ = std::move(head);
  kind_.head = head_.get();
  head_tokens_ = std::move(tokens);
  const size_t size = head_tokens_.empty() ? 0 : static_cast<size_t>(head_tokens_.back()) + 1;
  token_logits_.assign(size, -std::numeric_limits<float>::infinity());
}

/// Turns logits by column of the smaller output matrix into logits by token, since noise, penalties and ties
/// go by token.
std::span<const float> NeuralDrafter::by_token(std::span<const float> logits) {
  if (head_tokens_.empty()) return logits;
  for (size_t i = 0; i < head_tokens_.size(); ++i) {
    token_logits_[static_cast<size_t>(head_tokens_[i])] = logits[i];
  }
  return token_logits_;
}

/// Tells the runner the expected gain of the pass that evaluates a node, and gives the nodes of the inner
/// draft after it the probabilities of being kept by both: such a node counts only if this drafter proposes
/// it and the model keeps it, too.
void NeuralDrafter::announce_gain(const Draft& draft, int32_t node, const DraftLimits& limits) {
  if (!limits.may_decline) return evaluator_->runner().expect_gain({});
  const double kept = draft.calibration != nullptr ? draft.calibration->mean() : kUsuallyKept;
  const double path = node == DraftNode::kRoot ? 1.0 : draft.nodes[static_cast<size_t>(node)].path;
  const double row = limits.keeps_inner ? limits.leaf_threshold : 0.0;
  double otherwise = 0.0;
  for (DraftNode& inner : inner_draft_.nodes) {
    const double alone = path * inner.path;
    if (limits.keeps_inner) otherwise += std::max(0.0, alone - row);
    // What this drafter agrees with takes a row later.
    inner.path = static_cast<float>(alone * std::pow(kAgrees, inner.depth + 1) * (1.0 - row));
  }
  inner_draft_.order_by_path();
  evaluator_->runner().expect_gain({path * kept, otherwise, draft.size(), costs_});
}

/// Fills guesses_ with the best guesses for the token after the sequence, whose logits are given. Returns how
/// many there are.
size_t NeuralDrafter::guess(std::span<const float> logits, const Sequence& sequence, Sampler& sampler,
                            int32_t breadth, Draft& draft) {
  logits = by_token(logits);
  const auto position = static_cast<int64_t>(sequence.tokens.size());
  const auto most = std::min<size_t>(static_cast<size_t>(std::max(breadth, 1)), guesses_.size());
  const size_t count = sampler.best(logits, position, sequence.tokens, {guesses_.data(), most});
  if (count > 0 && draft.want_distributions) {
    sampler.distribution(logits, sequence.tokens, draft.distributions.emplace_back());
  }
  return count;
}

void NeuralDrafter::propose_chain(Sequence& sequence, Sampler& sampler, const DraftLimits& limits,
                                  int64_t most, Draft& draft) {
  candidates_.clear();
  int64_t first = cache_.first_unknown(sequence);
  for (int64_t left = most; left > 0;) {
    propose_inner(sequence, sampler, left - 1);
    announce_gain(draft, static_cast<int32_t>(draft.nodes.size()) - 1, limits);
    const Matrix<const float> logits = evaluate(sequence, first, inner_draft_);
    if (logits.rows == 0) break;
    left = verify_inner(sequence, sampler, limits, left, draft, logits);
    cache_.hold(sequence);
    first = static_cast<int64_t>(sequence.tokens.size()) - 1;
  }
  add_leaves(limits, draft);
}

/// Fills inner_draft_ with at most `most` tokens that may follow the sequence: the only text that a structure
/// leaves there, or else what the inner drafter proposes.
void NeuralDrafter::propose_inner(Sequence& sequence, Sampler& sampler, int64_t most) {
  inner_draft_.clear();
  inner_draft_.calibration = nullptr;
  if (most < 1) return;
  const ForcedTokens forced = sampler.forced(sequence.tokens, static_cast<size_t>(most));
  inner_asked_ = forced.tokens.empty() && inner_ != nullptr;
  if (inner_asked_) {
    inner_draft_.calibration = inner_calibration_;
    inner_->propose(sequence, sampler, inner_limits_, most, inner_draft_);
  } else {
    inner_draft_.put_before(forced.tokens, TokenOrigin::kStructure);
  }
  // N-grams of another text, and structures, may know tokens that this model lacks.
  const int32_t vocabulary = evaluator_->decoder().config().vocab_size;
  const bool known = std::all_of(inner_draft_.nodes.begin(), inner_draft_.nodes.end(),
                                 [&](const DraftNode& node) { return node.token < vocabulary; });
  if (!known) inner_draft_.clear();
}

/// Walks along the inner draft as far as its tokens are those that this drafter would propose. Appends these
/// tokens and one more to the sequence and to the draft, and keeps siblings as candidates. Returns how many
/// tokens may follow.
int64_t NeuralDrafter::verify_inner(Sequence& sequence, Sampler& sampler, const DraftLimits& limits,
                                    int64_t most, Draft& draft, Matrix<const float> logits) {
  int32_t at = DraftNode::kRoot;
  // The chain comes first in the draft: its last node is the parent of what follows.
  const auto tip = [&] { return static_cast<int32_t>(draft.nodes.size()) - 1; };
  while (true) {
    const size_t count =
        guess(logits.row_span(evaluator_->row_of(at)), sequence, sampler, limits.breadth, draft);
    if (count == 0) {
      most = 0;
      break;
    }
    const int32_t parent = tip();
    const bool unsure = guesses_[0].confidence < limits.threshold;
    if (unsure && limits.drop_unsure) {
      draft.unsure = true;
      most = 0;
      break;
    }
    for (size_t i = 1; i < count; ++i) {
      const auto rank = static_cast<int32_t>(i);
      const float path = draft.path_of(parent, rank, guesses_[i].confidence);
      candidates_.push_back({guesses_[i].token, parent, rank, guesses_[i].confidence, path});
    }
    const int32_t token = guesses_[0].token;
    const int32_t next = inner_draft_.child(at, token);
    const int32_t first_level =
        next == DraftNode::kRoot ? level : inner_draft_.nodes[static_cast<size_t>(next)].level;
    draft.add(token, parent, guesses_[0].confidence, 0, first_level);
    sequence.tokens.push_back(token);
    --most;
    if (unsure || draft.nodes.back().path < limits.path_threshold) {
      draft.unsure = true;
      most = 0;
    }
    if (sampler.ends(token)) most = 0;
    observe_inner(at, token);
    if (next != DraftNode::kRoot && inner_asked_) ++inner_->stats.accepted;
    if (most == 0 || next == DraftNode::kRoot) break;
    at = next;
  }
  evaluator_->keep(at, cache_.of(sequence));
  return most;
}

/// Takes the children of a kept node into the calibration of the inner drafter: `token` is the one that was
/// kept.
void NeuralDrafter::observe_inner(int32_t parent, int32_t token) {
  if (inner_calibration_ == nullptr || !inner_asked_) return;
  for (const DraftNode& node : inner_draft_.nodes) {
    if (node.parent == parent) inner_calibration_->observe(node.rank, node.confidence, node.token == token);
  }
}

/// Adds the likeliest siblings of the chain's nodes, as far as there is room for nodes.
void NeuralDrafter::add_leaves(const DraftLimits& limits, Draft& draft) {
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.path > b.path; });
  for (const Candidate& candidate : candidates_) {
    if (draft.size() >= limits.nodes || candidate.path < limits.leaf_threshold) break;
    draft.add(candidate.token, candidate.parent, candidate.confidence, candidate.rank, level);
  }
}

void NeuralDrafter::propose_tree(Sequence& sequence, Sampler& sampler, const DraftLimits& limits,
                                 int64_t most, Draft& draft) {
  const size_t known = sequence.tokens.size();
  candidates_.clear();
  in_slots_.clear();
  bool evaluated = most > 0 && expand(DraftNode::kRoot, sequence, known, sampler, limits, draft);
  while (evaluated && !candidates_.empty() && draft.size() < limits.nodes) {
    std::pop_heap(candidates_.begin(), candidates_.end(), kLessLikely);
    const Candidate candidate = candidates_.back();
    candidates_.pop_back();
    if (candidate.path < limits.leaf_threshold) break;
    int32_t node = draft.add(candidate.token, candidate.parent, candidate.confidence, candidate.rank, level);
    if (sampler.ends(candidate.token)) continue;
    if (candidate.confidence < limits.threshold || candidate.path < limits.path_threshold) {
      draft.unsure = true;
      continue;
    }
    node = add_forced(node, sequence, known, sampler, most, limits.nodes, draft);
    const DraftNode& last = draft.nodes[static_cast<size_t>(node)];
    if (last.depth + 1 < most && draft.size() < limits.nodes && !sampler.ends(last.token)) {
      evaluated = expand(node, sequence, known, sampler, limits, draft);
    }
  }
}

/// Fills path_ with the nodes from the root's child to `node`, and puts their tokens after the first `known`
/// of the sequence.
void NeuralDrafter::follow(int32_t node, Sequence& sequence, size_t known, const Draft& draft) {
  path_.clear();
  for (int32_t n = node; n != DraftNode::kRoot; n = draft.nodes[static_cast<size_t>(n)].parent) {
    path_.push_back(n);
  }
  std::reverse(path_.begin(), path_.end());
  sequence.tokens.resize(known);
  for (const int32_t n : path_) sequence.tokens.push_back(draft.nodes[static_cast<size_t>(n)].token);
}

/// Adds behind a node the tokens that alone may follow there: they take no pass. Returns the last of them, or
/// `node`.
int32_t NeuralDrafter::add_forced(int32_t node, Sequence& sequence, size_t known, Sampler& sampler,
                                  int64_t most, int32_t most_nodes, Draft& draft) {
  const int64_t room =
      std::min<int64_t>(most - draft.nodes[static_cast<size_t>(node)].depth - 1, most_nodes - draft.size());
  if (room < 1 || !sampler.structured()) return node;
  follow(node, sequence, known, draft);
  const ForcedTokens forced = sampler.forced(sequence.tokens, static_cast<size_t>(room));
  for (const int32_t token : std::span(forced.tokens).first(forced.certain)) {
    if (token >= evaluator_->decoder().config().vocab_size) break;
    node = draft.add(token, node, 1.0f, 0, TokenOrigin::kStructure);
  }
  return node;
}

/// Evaluates a node and makes its best guesses candidates. Ancestors whose keys and values another path has
/// overwritten are evaluated again in the same pass. Returns false if the pass was declined.
bool NeuralDrafter::expand(int32_t node, Sequence& sequence, size_t known, Sampler& sampler,
                           const DraftLimits& limits, Draft& draft) {
  follow(node, sequence, known, draft);
  const auto common = static_cast<size_t>(
      std::mismatch(path_.begin(), path_.end(), in_slots_.begin(), in_slots_.end()).first - path_.begin());
  const int64_t first =
      node == DraftNode::kRoot ? cache_.first_unknown(sequence) : static_cast<int64_t>(known + common);
  inner_draft_.clear();
  announce_gain(draft, node, limits);
  const Matrix<const float> logits = evaluate(sequence, first, inner_draft_);
  if (logits.rows == 0) return false;
  in_slots_ = path_;
  // The cache also holds the last token, but it is evaluated again at little cost if it stays.
  cache_.hold(sequence);
  const size_t count = guess(logits.row_span(0), sequence, sampler, limits.breadth, draft);
  for (size_t i = 0; i < count; ++i) {
    const auto rank = static_cast<int32_t>(i);
    candidates_.push_back({guesses_[i].token, node, rank, guesses_[i].confidence,
                           draft.path_of(node, rank, guesses_[i].confidence)});
    std::push_heap(candidates_.begin(), candidates_.end(), kLessLikely);
  }
  return true;
}

}  // namespace verbatim
