#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "drafting/drafter.h"
#include "drafting/evaluator.h"
#include "drafting/pass_costs.h"
#include "kv/dense.h"

namespace verbatim {

/// The cache that a drafter writes its keys and values into, and how much of it is valid.
class DraftCache {
 public:
  /// Drafts over the cache of the model that is drafted for. Drafting continues from the verified positions
  /// and writes into the slots after them, which verification overwrites (QSpec §3.1).
  DraftCache() = default;
  /// Drafts over a cache of the drafter's own.
  explicit DraftCache(const CacheShape& shape, int64_t capacity) : own_(std::in_place, shape, capacity) {}

  KvCache& of(Sequence& sequence) { return own_ ? *own_ : *sequence.cache; }
  /// The first of the sequence's tokens that must be evaluated before the next can be drafted.
  int64_t first_unknown(const Sequence& sequence);
  /// Notes that the cache holds all of the sequence's tokens but the last. The length of a shared cache is
  /// set to that, so that a drafter inside this one continues from there; the caller must restore the length.
  void hold(Sequence& sequence);
  /// Notes that the drafter's own cache holds all of `tokens` but the last.
  void hold_own(const std::vector<int32_t>& tokens);
  /// The drafter's own cache, or null.
  KvCache* own() { return own_ ? &*own_ : nullptr; }

 private:
  std::optional<DenseCache> own_;
  std::vector<int32_t> held_;  // the tokens that an own cache holds, from position 0
};

/// Drafts with a neural network: with another reading of the model that it drafts for, all of its layers or
/// the first few (ML-SpecQD §III-B, QSpec §3.1, thesis §4.3), or with another model.
///
/// It may have an inner drafter. Then it works as a speculator: it verifies the inner drafter's nodes in its
/// own reading, several in one pass, and proposes exactly what it would propose alone (ML-SpecQD §III-C).
class NeuralDrafter : public Drafter {
 public:
  /// `evaluator` outlives the drafter. With `grow_trees` every node of a tree may be evaluated and have
  /// children, the likeliest nodes first. Otherwise the draft is a chain with siblings as leaves, which take
  /// no passes.
  NeuralDrafter(Evaluator& evaluator, PassKind kind, DraftCache cache, bool grow_trees)
      : evaluator_(&evaluator), kind_(kind), cache_(std::move(cache)), grow_trees_(grow_trees) {}

  Evaluator& evaluator() { return *evaluator_; }
  const PassKind& kind() const { return kind_; }

  /// Sets the inner drafter, which outlives this one; null: none. `calibration`, if given, learns from the
  /// inner drafter's drafts and calibrates their confidences.
  void set_inner(Drafter* inner, const DraftLimits& limits, Calibration* calibration = nullptr) {
    inner_ = inner;
    inner_limits_ = limits;
    inner_calibration_ = calibration;
  }
  /// Sets the costs of this drafter's passes, which must be valid at every later propose(): a batch decides
  /// by them whether a pass pays, and the statistics compare its times with them.
  void set_costs(const PassCosts& costs) { costs_ = &costs; }
  /// The inner draft, or the only text that a structure leaves, of the pass that was declined at the end of
  /// the last propose(): it follows the last node of the chain. Null if no pass was declined. The path
  /// probabilities of its nodes are those of the offer.
  const Draft* undecided() const { return declined_ ? &inner_draft_ : nullptr; }
  /// Makes the drafter use an output matrix for fewer tokens, which it shares the ownership of: column i is
  /// tokens[i], in ascending order, or token i if `tokens` is empty.
  void own_head(std::shared_ptr<const LinearWeight> head, std::vector<int32_t> tokens = {});

  /// Makes the drafter see the shared cache through a narrower view, which it owns. `verifying` is the
  /// reading whose keys and values the cache holds.
  void own_view(std::unique_ptr<SparseCache> view, Reading verifying = Reading::kFull) {
    view_ = std::move(view);
    verifying_ = verifying;
    kind_.sparse = view_.get();
  }

  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override;
  void observe(const Sequence& sequence) override;

  /// The number of rows of each pass of the last propose(). The first pass also has the tokens that were
  /// accepted since the propose() before.
  const std::vector<int64_t>& pass_rows() const { return pass_rows_; }

 private:
  /// A token that may join the draft.
  struct Candidate {
    int32_t token;
    int32_t parent;
    int32_t rank;
    float confidence;
    float path;
  };

  bool knows(const Sequence& sequence);
  void show(std::span<const int32_t> tokens, KvCache& cache);
  void take_in(std::span<const int32_t> tokens, int64_t first, KvCache& cache);
  Matrix<const float> evaluate(Sequence& sequence, int64_t first, Draft& following);
  void propose_chain(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t most,
                     Draft& draft);
  void propose_inner(Sequence& sequence, Sampler& sampler, int64_t most);
  int64_t verify_inner(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t most,
                       Draft& draft, Matrix<const float> logits);
  void add_leaves(const DraftLimits& limits, Draft& draft);
  void propose_tree(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t most,
                    Draft& draft);
  void follow(int32_t node, Sequence& sequence, size_t known, const Draft& draft);
  int32_t add_forced(int32_t node, Sequence& sequence, size_t known, Sampler& sampler, int64_t most,
                     int32_t most_nodes, Draft& draft);
  bool expand(int32_t node, Sequence& sequence, size_t known, Sampler& sampler, const DraftLimits& limits,
              Draft& draft);
  std::span<const float> by_token(std::span<const float> logits);
  size_t guess(std::span<const float> logits, const Sequence& sequence, Sampler& sampler, int32_t breadth,
               Draft& draft);
  void announce_gain(const Draft& draft, int32_t node, const DraftLimits& limits);
  void observe_inner(int32_t parent, int32_t token);

  Evaluator* evaluator_;
  PassKind kind_;
  DraftCache cache_;
  bool grow_trees_;
  std::shared_ptr<const LinearWeight> head_;
  std::vector<int32_t> head_tokens_;  // by column of head_; empty: column i is token i
  std::vector<float> token_logits_;   // by token, minus infinity for those that head_ lacks
  std::unique_ptr<SparseCache> view_;
  Reading verifying_ = Reading::kFull;
  Drafter* inner_ = nullptr;
  DraftLimits inner_limits_;
  Calibration* inner_calibration_ = nullptr;
  Draft inner_draft_;
  bool inner_asked_ = false;  // whether the inner drafter made inner_draft_, and not a structure
  std::array<Guess, Sampler::kMostGuesses> guesses_{};
  std::vector<Candidate> candidates_;  // of a tree: a heap by path probability
  std::vector<int32_t> in_slots_;      // of a tree: the nodes whose keys and values lie after the sequence's
  std::vector<int32_t> path_;
  std::vector<int64_t> pass_rows_;
  bool declined_ = false;  // whether the last pass of the last propose() was declined
  const PassCosts* costs_ = nullptr;
};

}  // namespace verbatim
