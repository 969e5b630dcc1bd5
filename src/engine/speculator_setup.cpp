#include "engine/speculator_setup.h"

#include "speculation/stores.h"

namespace verbatim {

namespace {

PlanningCosts planning_costs(const PassKind& verifying, Evaluator& target, DrafterStack& drafters,
                             const std::function<void(double)>& progress) {
  const auto all = static_cast<double>(drafters.size() + 1);
  double done = 0;
  const auto look_up = [&](Evaluator& evaluator, const PassKind& kind) {
    const PassCosts costs = pass_costs(evaluator, kind, [&](double fraction) {
      if (progress) progress((done + fraction) / all);
    });
    ++done;
    return costs;
  };
  PlanningCosts costs{.target = look_up(target, verifying), .levels = {}};
  for (size_t i = 0; i < drafters.size(); ++i) {
    NeuralDrafter* const network = drafters.network(i);
    costs.levels.emplace_back();
    if (network != nullptr) costs.levels.back() = look_up(network->evaluator(), network->kind());
  }
  return costs;
}

TextModel text_model(const ModelData& data) {
  return {&data.decoder, data.tokenizer};
}

}  // namespace

std::unique_ptr<Speculator> make_speculator(const Recipe& recipe, const ModelData& model,
                                            const ModelData* draft_model, Evaluator& evaluator,
                                            int64_t capacity, ThreadTeam& team,
                                            const std::function<void(double)>& progress,
                                            SharedSetup* shared) {
  validate(recipe);
  SharedSetup own;
  SharedSetup& setup = shared != nullptr ? *shared : own;
  const DecoderWeights* const draft_weights =
      draft_model != nullptr ? &draft_model->decoder.weights() : nullptr;
  const Recipe used = with_stores_of(recipe, model.decoder, draft_weights);
  const TextModel draft = draft_model != nullptr ? text_model(*draft_model) : TextModel{};
  auto drafters =
      std::make_unique<DrafterStack>(used, evaluator, text_model(model), draft, capacity, team, &setup.heads);
  if (used.planned && !used.levels.empty() && !setup.costs) {
    const PassKind verifying(parse_reading(used.reading, "recipe " + used.name));
    setup.costs = planning_costs(verifying, evaluator, *drafters, progress);
  }
  return std::make_unique<Speculator>(used, std::move(drafters), evaluator, setup.costs);
}

}  // namespace verbatim
