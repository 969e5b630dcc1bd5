#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "kv/dense.h"
#include "speculation/drafter.h"
#include "speculation/evaluator.h"
#include "speculation/pass_costs.h"

namespace verbatim {

/// Where a drafter's keys and values go, and what of them still holds.
class DraftCache {
 public:
  /// The cache of the model that is drafted for. Drafting continues from its verified positions, and writes
  /// into the slots after them, which verification overwrites (QSpec §3.1).
  DraftCache() = default;
  /// A cache of the drafter's own.
  explicit DraftCache(const CacheShape& shape, int64_t capacity) : own_(std::in_place, shape, capacity) {}

  KvCache& of(Sequence& sequence) { return own_ ? *own_ : *sequence.cache; }
  /// The first of the sequence's tokens that must be evaluated before the next can be drafted.
  int64_t first_unknown(const Sequence& sequence);
  /// Hears that the cache holds the sequence's tokens but the last. A shared cache is as long as that from
  /// then on, so that a drafter inside this one goes on from here and leaves alone what lies before; its
  /// length is left for the caller to put back.
  void hold(Sequence& sequence);
  /// The same for a cache of the drafter's own.
  void hold_own(const std::vector<int32_t>& tokens);
  /// The drafter's own cache, or null.
  KvCache* own() { return own_ ? &*own_ : nullptr; }

 private:
  std::optional<DenseCache> own_;
  std::vector<int32_t> held_;  // the tokens that an own cache holds, from position 0
};

/// Drafts with a neural network: another reading of the model it drafts for, all of its layers or the first
/// (ML-SpecQD §III-B, QSpec §3.1, thesis §4.3), or another model.
///
/// With a drafter inside it is a speculator of its own: it verifies that one's drafts in its reading, several
/// in one pass, and proposes what it finds, exactly what it would propose alone (ML-SpecQD §III-C).
class NeuralDrafter : public Drafter {
 public:
  /// `evaluator` outlives the drafter. `grow_trees`: every node of a tree may be evaluated and branch, the
  /// likeliest first; otherwise siblings are leaves beside a chain, which costs no passes.
  NeuralDrafter(Evaluator& evaluator, PassKind kind, DraftCache cache, bool grow_trees)
      : evaluator_(&evaluator), kind_(kind), cache_(std::move(cache)), grow_trees_(grow_trees) {}

  Evaluator& evaluator() { return *evaluator_; }
  const PassKind& kind() const { return kind_; }

  /// Drafts with another drafter from now on, which outlives this one; null: alone. `worth`, if given, learns
  /// what that one's confidence is worth and is used to weigh it.
  void set_inner(Drafter* inner, const DraftLimits& limits, Calibration* calibration = nullptr) {
    inner_ = inner;
    inner_limits_ = limits;
    inner_calibration_ = calibration;
  }
  /// Compares its passes with this table from now on, in its statistics.
  void set_table(const PassCosts& table) { table_ = table; }
  /// Drafts with a head for fewer tokens, which its PassKind points to from now on: column i is tokens[i], in
  /// ascending order or, without `tokens`, token i.
  void own_head(std::shared_ptr<const LinearWeight> head, std::vector<int32_t> tokens = {});

  /// Keeps the narrower view of the shared cache that its PassKind points to. `verifying`: the reading that
  /// has filled that cache.
  void own_view(std::unique_ptr<SparseCache> view, Reading verifying = Reading::kFull) {
    view_ = std::move(view);
    verifying_ = verifying;
    kind_.sparse = view_.get();
  }

  void propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
               Draft& draft) override;
  void observe(const Sequence& sequence) override;

  /// How many rows each pass of the last propose() had: the first one takes in what was accepted since.
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
  Matrix<const float> evaluate(Sequence& sequence, int64_t first, const Draft& following);
  void propose_chain(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t most,
                     Draft& draft);
  int64_t verify_inner(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t most,
                       Draft& draft, Matrix<const float> logits);
  void add_leaves(const DraftLimits& limits, Draft& draft);
  void propose_tree(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t most,
                    Draft& draft);
  bool expand(int32_t node, Sequence& sequence, size_t known, Sampler& sampler, const DraftLimits& limits,
              Draft& draft);
  std::span<const float> by_token(std::span<const float> logits);
  size_t guess(std::span<const float> logits, const Sequence& sequence, Sampler& sampler, int32_t breadth,
               Draft& draft);
  void announce_gain(const Draft& draft, int32_t node, const DraftLimits& limits) const;
  void observe_inner(int32_t parent, int32_t token);

  Evaluator* evaluator_;
  PassKind kind_;
  DraftCache cache_;
  bool grow_trees_;
  std::shared_ptr<const LinearWeight> head_;
  std::vector<int32_t> head_tokens_;  // by column of head_; empty where they are the first
  std::vector<float> token_logits_;   // by token, minus infinity for those that head_ lacks
  std::unique_ptr<SparseCache> view_;
  Reading verifying_ = Reading::kFull;
  Drafter* inner_ = nullptr;
  DraftLimits inner_limits_;
  Calibration* inner_calibration_ = nullptr;
  Draft inner_draft_;
  std::array<Guess, Sampler::kMostGuesses> guesses_{};
  std::vector<Candidate> candidates_;  // of a tree: a heap by path probability
  std::vector<int32_t> in_slots_;      // of a tree: the nodes whose keys and values lie after the sequence's
  std::vector<int32_t> path_;
  std::vector<int64_t> pass_rows_;
  std::optional<PassCosts> table_;
};

}  // namespace verbatim
