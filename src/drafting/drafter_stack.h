#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/thread_team.h"
#include "drafting/neural_drafter.h"
#include "text/tokenizer.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// A model with the tokenizer that its tokens come from.
struct TextModel {
  const Decoder* decoder = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< null when it has none
};

/// The pass kind of a level of kind self or model: its reading, layers and part of the cache. A head for
/// fewer tokens or a narrower view of the past are added by its drafter, which owns them. Throws
/// Error(kBadInput), naming `where`, for an unknown reading.
PassKind pass_kind(const DraftLevel& level, const std::string& where);

/// The output matrices for fewer tokens that all stacks of one recipe share: the stack that is made first
/// packs them.
struct SharedHeads {
  struct Head {
    std::shared_ptr<const LinearWeight> weight;
    std::vector<int32_t> tokens;  ///< the token of each column; empty: column i is token i
  };
  std::vector<std::optional<Head>> levels;  ///< by level; none for levels that draft among all tokens
};

/// The drafters of a recipe, one per level, each drafting for the level before it. The drafts of a model with
/// another vocabulary are translated.
class DrafterStack {
 public:
  /// `target` evaluates `model`, whose sequences grow to at most `capacity` tokens. Levels of kind `model`
  /// draft with `draft_model`, which has no decoder if there is none. `target` and both models outlive the
  /// stack. `team` packs output matrices for fewer tokens; with `heads` they are taken from there, or left
  /// there for other stacks of the recipe. Throws Error(kUsage) if a level needs a model or weights that are
  /// not there, drafts for a level that is translated, or reads a cache of another kind.
  DrafterStack(const Recipe& recipe, Evaluator& target, const TextModel& model, const TextModel& draft_model,
               int64_t capacity, ThreadTeam& team, SharedHeads* heads = nullptr);

  size_t size() const { return drafters_.size(); }
  Drafter& level(size_t i) { return *drafters_[i]; }
  /// The drafter of a level as a network; null for n-grams and for a model whose drafts are translated.
  NeuralDrafter* network(size_t i) { return networks_[i]; }
  /// Sets the statistics of all levels to zero.
  void reset_stats();
  /// Calls Drafter::observe() of every level.
  void observe(const Sequence& sequence);

 private:
  std::unique_ptr<Evaluator> draft_evaluator_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::vector<NeuralDrafter*> networks_;  // by level; null for others
};

}  // namespace verbatim
