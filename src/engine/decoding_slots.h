#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/model_data.h"
#include "engine/pass_batcher.h"
#include "engine/speculator_setup.h"

namespace verbatim {

/// What a sequence decodes with. A slot is used by one sequence at a time, and by the next with what its
/// drafters have learnt.
struct DecodingSlot {
  PassBatcher::Member member;
  std::unique_ptr<Evaluator> evaluator;
  Recipe recipe;
  std::unique_ptr<Speculator> speculator;
};

/// The slots of an engine. All members may be called from several threads.
class DecodingSlots {
 public:
  /// The batcher outlives the slots, and so do those that are out. At most `idle` of them are kept for later.
  DecodingSlots(const Model& model, PassBatcher& batcher, int64_t capacity, int32_t idle)
      : model_(model), batcher_(&batcher), capacity_(capacity), most_idle_(idle) {}

  /// Gives the model that recipes with a `model` level draft with. Throws Error(kUsage) after the first slot.
  void set_draft_model(const Model& model);
  /// That model's sizes, or null.
  const ModelConfig* draft_config() const;

  /// A slot for a recipe, used before if there is one. Where it is the first, what passes cost may be
  /// measured for it, of which `progress` hears. Throws what make_speculator() throws.
  std::unique_ptr<DecodingSlot> take(const Recipe& recipe, const std::function<void(double)>& progress = {});
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
