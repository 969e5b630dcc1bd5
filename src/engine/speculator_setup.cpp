#include "engine/speculator_setup.h"

namespace verbatim {

namespace {

bool holds(const ModelData& data, std::string_view reading) {
  const Reading parsed = parse_reading(reading, "a recipe");
  return parsed == Reading::kFull || data.decoder.weights().head.find(reading_format(parsed)) != nullptr;
}

/// What drafts in place of a reading that the model is not stored for: `mxbf16-draft` and `mxfp4-w4a8` are
/// the same numbers, and drafts in `int4` are closer to the text than those in `bsfp` (docs/formats.md).
/// Empty if there is nothing.
std::string_view stand_in(const ModelData& data) {
  for (const std::string_view reading :
       {"mxbf16-draft", "mxfp4-w4a8", "int4-w4a8", "int4-asymmetric-w4a8", "bsfp-draft"}) {
    if (holds(data, reading)) return reading;
  }
  return {};
}

/// The recipe with the levels that there are.
Recipe with_what_there_is(const Recipe& recipe, const ModelData& data, const ModelData* draft_model) {
  Recipe used = recipe;
  used.levels.clear();
  for (DraftLevel level : recipe.levels) {
    if (level.kind == DraftLevel::Kind::kModel) {
      if (draft_model == nullptr) continue;
      if (!holds(*draft_model, level.reading)) level.reading = "full";
    }
    if (level.kind == DraftLevel::Kind::kSelf && !holds(data, level.reading)) {
      level.reading = stand_in(data);
      if (level.reading.empty()) continue;
    }
    used.levels.push_back(level);
  }
  return used;
}

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
  SharedSetup own;
  SharedSetup& setup = shared != nullptr ? *shared : own;
  const Recipe used = recipe.planned ? with_what_there_is(recipe, model, draft_model) : recipe;
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
