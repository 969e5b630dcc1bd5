#include "bench_decode_models.h"

#include <algorithm>
#include <map>

#include "fail.h"
#include "load_model.h"

namespace verbatim::app {

namespace {

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Adds the formats that are not there yet. "full" comes first: the reading of that name takes the first
/// exact store.
void unite(Names& formats, const Names& more) {
  for (const std::string& name : more) {
    if (!contains(formats, name)) formats.insert(name == "full" ? formats.begin() : formats.end(), name);
  }
}

/// Recipes that need formats with the same key can share a copy of the model.
Names sharing_key(Names formats) {
  if (contains(formats, "full")) return {"full"};
  std::sort(formats.begin(), formats.end());
  return formats;
}

/// The file of the model that drafts for a recipe; empty if none does.
std::string draft_path(const Recipe& recipe, const std::string& given) {
  std::string path;
  bool drafts = false;
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind != DraftLevel::Kind::kModel) continue;
    drafts = true;
    if (path.empty()) path = given.empty() ? level.model : given;
  }
  if (drafts && path.empty() && recipe.needs_draft_model()) {
    fail(ErrorKind::kUsage, "the recipe {} drafts with another model: name one with --draft-model",
         recipe.name);
  }
  return path;
}

}  // namespace

std::vector<DecodeCase> load_cases(const std::string& model, const std::vector<Recipe>& recipes,
                                   const std::string& draft_model, int32_t threads) {
  std::vector<Names> needed;                   // by recipe
  std::map<Names, Names> formats;              // by sharing key
  std::map<std::string, Names> draft_formats;  // by path
  for (const Recipe& recipe : recipes) {
    needed.push_back(needed_formats(model, recipe));
    unite(formats[sharing_key(needed.back())], needed.back());
    const std::string path = draft_path(recipe, draft_model);
    if (!path.empty()) unite(draft_formats[path], recipe.draft_model_formats());
  }
  std::map<Names, Model> models;
  for (const auto& [key, names] : formats) models.emplace(key, load_model(model, names, threads));
  std::map<std::string, Model> draft_models;
  for (const auto& [path, names] : draft_formats) {
    draft_models.emplace(path, load_model(path, names, threads));
  }
  std::vector<DecodeCase> cases;
  for (size_t i = 0; i < recipes.size(); ++i) {
    const Recipe& recipe = recipes[i];
    DecodeCase& added = cases.emplace_back(DecodeCase{
        .recipe = recipe, .model = models.at(sharing_key(needed[i])), .draft_model = std::nullopt});
    added.weight_bytes = weight_bytes(added.model, needed[i]);
    const std::string path = draft_path(recipe, draft_model);
    if (path.empty()) continue;
    added.draft_model = draft_models.at(path);
    added.weight_bytes += weight_bytes(*added.draft_model, recipe.draft_model_formats());
  }
  return cases;
}

std::string verifying_reading(const DecodeCase& one) {
  return resolved_reading(one.model, one.recipe.reading);
}

}  // namespace verbatim::app
