#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/model_data.h"
#include "engine/pass_batcher.h"
#include "engine/speculator_setup.h"

namespace verbatim {

/// The drafters, the speculator and the place in the batch that one sequence decodes with. When the sequence
/// has ended, the next one takes the slot over, with everything that its drafters have learnt.
struct DecodingSlot {
  PassBatcher::Member member;
  std::unique_ptr<Evaluator> evaluator;
  Recipe recipe;
  std::unique_ptr<Speculator> speculator;
};

/// The slots of an engine. All members may be called from several threads.
class DecodingSlots {
 public:
  /// The batcher must outlive the slots. At most `idle` slots that are given back are kept for later
  /// sequences.
  DecodingSlots(const Model& model, PassBatcher& batcher, int64_t capacity, int32_t idle)
      : model_(model), batcher_(&batcher), capacity_(capacity), most_idle_(idle) {}

  /// Gives the model that recipes with a `model` level draft with. Throws Error(kUsage) after the first slot.
  void set_draft_model(const Model& model);
  /// The config of the model that recipes draft with; null if there is no such model.
  const ModelConfig* draft_config() const;

  /// A recipe as make_speculator() makes it fit the stores of the models.
  Recipe adapted(const Recipe& recipe) const;

  /// Takes a slot for a recipe: one that was given back, or else a new one. Before the first slot of a
  /// planned recipe the costs of passes may be measured; `progress` is then called with the fraction done,
  /// from 0 to 1. Throws whatever make_speculator() throws.
  std::unique_ptr<DecodingSlot> take(const Recipe& recipe, const std::function<void(double)>& progress = {});
  /// Returns a slot, so that a later sequence with the same recipe may take it.
  void give_back(std::unique_ptr<DecodingSlot> slot);

 private:
  const ModelData* draft_data() const;

  Model model_;
  PassBatcher* batcher_;
  int64_t capacity_;
  int32_t most_idle_;
  mutable std::mutex draft_mutex_;
  std::optional<Model> draft_model_;
  std::mutex setup_mutex_;    // held while costs are measured
  ThreadTeam one_thread_{1};  // packs heads of drafters
  std::vector<std::pair<Recipe, SharedSetup>> setups_;
  std::mutex idle_mutex_;
  std::vector<std::unique_ptr<DecodingSlot>> idle_;
};

}  // namespace verbatim
