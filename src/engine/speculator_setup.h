#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/model_data.h"
#include "speculation/speculator.h"

namespace verbatim {

/// What several speculators of one recipe have in common: the first to be made leaves it for the others.
struct SharedSetup {
  SharedHeads heads;
  std::optional<PlanningCosts> costs;
};

/// A speculator for a recipe over a model that `evaluator` evaluates. `draft_model` is what it may draft
/// with, or null. A planned recipe drafts with another reading of four bits where the model lacks a level's,
/// and goes without the levels that the model's formats or the lack of a draft model rule out; what its
/// passes cost is looked up or measured, and `progress` hears of that. Throws Error(kUsage) when a recipe
/// that is not planned needs what is not there, and what validate() throws of the recipe. `shared`, if given,
/// is read and completed.
std::unique_ptr<Speculator> make_speculator(const Recipe& recipe, const ModelData& model,
                                            const ModelData* draft_model, Evaluator& evaluator,
                                            int64_t capacity, ThreadTeam& team,
                                            const std::function<void(double)>& progress,
                                            SharedSetup* shared = nullptr);

}  // namespace verbatim
