#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/thread_team.h"
#include "speculation/neural_drafter.h"
#include "text/tokenizer.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// A model with the tokenizer that its tokens come from.
struct TextModel {
  const Decoder* decoder = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< null when it has none
};

/// How a network of a level (of kind self or model) evaluates, but for what belongs to its drafter: a head
/// for fewer tokens, a narrower view of the past. Throws Error(kBadInput), naming `where`, for an unknown
/// reading.
PassKind pass_kind(const DraftLevel& level, const std::string& where);

/// What several stacks of one recipe have in common: the first to be made leaves it for the others.
struct SharedHeads {
  struct Head {
    std::shared_ptr<const LinearWeight> weight;
    std::vector<int32_t> tokens;  ///< by column; empty: the first ones
  };
  std::vector<std::optional<Head>> levels;  ///< the heads for fewer tokens of levels that have one
};

/// The drafters of a recipe, one per level, each drafting for the one before. Drafts of a model whose
/// vocabulary is another are translated.
class DrafterStack {
 public:
  /// `target` evaluates `model`, whose sequences grow to at most `capacity` tokens. `draft_model` is what
  /// levels of another model draft with, or without decoder. Both outlive the stack. Throws Error(kUsage)
  /// when a level needs what is not there, drafts for one that is translated, or reads a cache of another
  /// kind. `team` packs heads for fewer tokens, unless `heads`, if given, has them: there
  /// they are left for other stacks of the recipe.
  DrafterStack(const Recipe& recipe, Evaluator& target, const TextModel& model, const TextModel& draft_model,
               int64_t capacity, ThreadTeam& team, SharedHeads* heads = nullptr);

  size_t size() const { return drafters_.size(); }
  Drafter& level(size_t i) { return *drafters_[i]; }
  /// The level as a network, or null for n-grams and for a model that is translated.
  NeuralDrafter* network(size_t i) { return networks_[i]; }
  /// Starts the statistics of all levels anew.
  void reset_stats();
  /// Tells all of them that every token of the sequence is verified.
  void observe(const Sequence& sequence);

 private:
  std::unique_ptr<Evaluator> draft_evaluator_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::vector<NeuralDrafter*> networks_;  // by level; null for others
};

}  // namespace verbatim
