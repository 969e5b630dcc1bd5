#include "verbatim/recipe.h"

#include <toml++/toml.h>
#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "base/input_file.h"
#include "kv/make_cache.h"
#include "speculation/built_in_recipes.h"

namespace verbatim {

namespace {

/// Deeper tables than any recipe may have are left for validate() to refuse.
constexpr size_t kMostTables = 16;
/// Tables nest as deep as dots in a key say, and are freed recursively: without a limit a file of dots would
/// use up the stack.
constexpr size_t kLongestText = size_t{16} << 10;

void allow_only(const toml::table& table, std::initializer_list<std::string_view> keys,
                const std::string& where) {
  for (const auto& [key, value] : table) {
    bool known = false;
    for (const std::string_view candidate : keys) known = known || key.str() == candidate;
    if (!known) bad_input("{}: unknown key \"{}\" in line {}", where, key.str(), key.source().begin.line);
  }
}

const toml::table* sub_table(const toml::table& table, std::string_view key, const std::string& where) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) bad_input("{}: \"{}\" must be a table", where, key);
  return node->as_table();
}

std::string text(const toml::table& table, std::string_view key, const std::string& where) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) bad_input("{}: \"{}\" is missing", where, key);
  if (!node->is_string()) bad_input("{}: \"{}\" must be a string", where, key);
  return node->as_string()->get();
}

double number(const toml::table& table, std::string_view key, double fallback, const std::string& where) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return fallback;
  const auto value = node->value<double>();
  if (!value || node->is_boolean()) bad_input("{}: \"{}\" must be a number", where, key);
  return *value;
}

int32_t whole_number(const toml::table& table, std::string_view key, int32_t fallback,
                     const std::string& where) {
  const double value = number(table, key, fallback, where);
  constexpr double kLargest = 1 << 30;
  if (!(value >= -kLargest && value <= kLargest) || value != static_cast<int32_t>(value)) {
    bad_input("{}: \"{}\" must be a whole number", where, key);
  }
  return static_cast<int32_t>(value);
}

DraftLevel::Kind drafter_kind(const std::string& name, const std::string& where) {
  if (name == "self") return DraftLevel::Kind::kSelf;
  if (name == "model") return DraftLevel::Kind::kModel;
  if (name == "ngram") return DraftLevel::Kind::kNgram;
  bad_input("{}: unknown drafter kind \"{}\"; known are self, model and ngram", where, name);
}

void read_stop(DraftLevel& level, const toml::table& drafter, const std::string& where) {
  const toml::table* const stop = sub_table(drafter, "stop", where);
  if (stop == nullptr) return;
  allow_only(*stop, {"length", "threshold"}, where);
  level.length = whole_number(*stop, "length", level.length, where);
  level.threshold = static_cast<float>(number(*stop, "threshold", 0.0, where));
}

void read_tree(DraftLevel& level, const toml::table& drafter, const std::string& where) {
  const toml::table* const tree = sub_table(drafter, "tree", where);
  if (tree == nullptr) return;
  allow_only(*tree, {"breadth", "nodes"}, where);
  level.breadth = whole_number(*tree, "breadth", 2, where);
  level.nodes = whole_number(*tree, "nodes", 0, where);
}

void read_self(DraftLevel& level, const toml::table& drafter, const std::string& where) {
  allow_only(
      drafter,
      {"kind", "reading", "cache", "budget", "layers", "experts", "vocabulary", "stop", "tree", "drafter"},
      where);
  level.reading = text(drafter, "reading", where);
  if (drafter.contains("cache")) level.cache = text(drafter, "cache", where);
  level.budget = static_cast<float>(number(drafter, "budget", level.budget, where));
  if (drafter.contains("budget") && (level.cache == "full" || level.cache == "draft")) {
    bad_input("{}: \"budget\" belongs to the caches window and snapkv", where);
  }
  level.layers = whole_number(drafter, "layers", 0, where);
  level.experts = whole_number(drafter, "experts", 0, where);
}

void read_model(DraftLevel& level, const toml::table& drafter, const std::string& where) {
  allow_only(drafter, {"kind", "reading", "model", "vocabulary", "stop", "tree", "drafter"}, where);
  level.reading = "full";
  if (drafter.contains("reading")) level.reading = text(drafter, "reading", where);
  if (drafter.contains("model")) level.model = text(drafter, "model", where);
}

void read_ngram(DraftLevel& level, const toml::table& drafter, const std::string& where) {
  allow_only(drafter, {"kind", "longest_match", "shortest_match", "table", "stop", "tree"}, where);
  level.longest_match = whole_number(drafter, "longest_match", level.longest_match, where);
  level.shortest_match = whole_number(drafter, "shortest_match", level.shortest_match, where);
  if (drafter.contains("table")) level.table = text(drafter, "table", where);
}

/// Reads the drafter in `parent` and those inside it, each a level further from the model.
void read_levels(Recipe& recipe, const toml::table& parent, const std::string& where) {
  const toml::table* drafter = sub_table(parent, "drafter", where);
  while (drafter != nullptr) {
    if (recipe.levels.size() == kMostTables) bad_input("{}: the drafters are nested too deeply", where);
    DraftLevel& level = recipe.levels.emplace_back();
    level.kind = drafter_kind(text(*drafter, "kind", where), where);
    switch (level.kind) {
      case DraftLevel::Kind::kSelf:
        read_self(level, *drafter, where);
        break;
      case DraftLevel::Kind::kModel:
        read_model(level, *drafter, where);
        break;
      case DraftLevel::Kind::kNgram:
        read_ngram(level, *drafter, where);
        break;
    }
    level.vocabulary = whole_number(*drafter, "vocabulary", 0, where);
    read_stop(level, *drafter, where);
    read_tree(level, *drafter, where);
    drafter = sub_table(*drafter, "drafter", where);
  }
}

void read_cache(Recipe& recipe, const toml::table& root, const std::string& where) {
  const toml::table* const cache = sub_table(root, "cache", where);
  if (cache == nullptr) return;
  allow_only(*cache, {"kind", "group", "buffer", "bits"}, where);
  recipe.cache = parse_cache(text(*cache, "kind", where), where);
  if (recipe.cache.kind != CacheOptions::Kind::kHierarchical && cache->size() > 1) {
    bad_input("{}: the cache {} has no options", where, cache_name(recipe.cache));
  }
  const auto read = [&](const char* key, int32_t& value) { value = whole_number(*cache, key, value, where); };
  read("group", recipe.cache.group);
  read("buffer", recipe.cache.buffer);
  read("bits", recipe.cache.bits);
}

void read_acceptance(Recipe& recipe, const toml::table& root, const std::string& where) {
  const toml::table* const acceptance = sub_table(root, "acceptance", where);
  if (acceptance == nullptr) return;
  allow_only(*acceptance, {"rule", "rollback"}, where);
  const std::string rule = text(*acceptance, "rule", where);
  if (rule == "rejection") {
    recipe.acceptance = Recipe::Acceptance::kRejection;
  } else if (rule == "bild") {
    recipe.acceptance = Recipe::Acceptance::kBild;
  } else if (rule != "exact") {
    bad_input("{}: unknown acceptance rule \"{}\"; known are exact, rejection and bild", where, rule);
  }
  if (acceptance->contains("rollback") && recipe.acceptance != Recipe::Acceptance::kBild) {
    bad_input("{}: \"rollback\" belongs to the rule bild", where);
  }
  recipe.rollback = static_cast<float>(number(*acceptance, "rollback", 2.0, where));
}

}  // namespace

std::string DraftLevel::short_name() const {
  if (kind == Kind::kNgram) return "ngram";
  std::string name = kind == Kind::kSelf ? "self@" : "model@";
  name += reading.empty() ? "full" : reading;
  if (layers > 0) name += "/" + std::to_string(layers);
  if (experts > 0) name += "+" + std::to_string(experts);
  return name;
}

std::string_view Recipe::guarantee() const {
  switch (acceptance) {
    case Acceptance::kExact:
      return "bytes";
    case Acceptance::kRejection:
      return "distribution";
    case Acceptance::kBild:
      return "none";
  }
  return "none";
}

bool Recipe::needs_draft_model() const {
  return !planned && std::any_of(levels.begin(), levels.end(), [](const DraftLevel& level) {
    return level.kind == DraftLevel::Kind::kModel;
  });
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : built_in_recipes()) names.emplace_back(recipe.name);
  std::sort(names.begin(), names.end());  // files are listed with their endings, which sort after a dash
  return names;
}

Recipe parse_recipe(std::string_view toml_text, const std::string& where) {
  if (toml_text.size() > kLongestText) {
    bad_input("{}: this is no recipe, it is longer than {} bytes", where, kLongestText);
  }
  toml::table root;
  try {
    root = toml::parse(toml_text);
  } catch (const toml::parse_error& error) {
    // The library names the macro that it was built with.
    const bool too_deep = error.description().find("TOML_MAX_NESTED") != std::string_view::npos;
    bad_input("{}: line {}: {}", where, error.source().begin.line,
              too_deep ? "the values nest too deep" : error.description());
  }
  allow_only(root,
             {"name", "summary", "source", "planner", "reading", "scheme", "cache", "drafter", "acceptance"},
             where);
  Recipe recipe;
  recipe.name = text(root, "name", where);
  recipe.summary = text(root, "summary", where);
  recipe.source = text(root, "source", where);
  if (const toml::node* const planner = root.get("planner"); planner != nullptr) {
    if (!planner->is_boolean()) bad_input("{}: \"planner\" must be true or false", where);
    recipe.planned = planner->as_boolean()->get();
  }
  if (root.contains("reading")) recipe.reading = text(root, "reading", where);
  if (root.contains("scheme")) recipe.scheme = text(root, "scheme", where);
  read_cache(recipe, root, where);
  read_levels(recipe, root, where);
  read_acceptance(recipe, root, where);
  validate(recipe, where);
  return recipe;
}

Recipe load_recipe(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) {
    return parse_recipe(read_input(name_or_path, kLongestText), name_or_path);
  }
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.name == name_or_path) return parse_recipe(recipe.toml, "recipe " + name_or_path);
  }
  fail(ErrorKind::kUsage,
       "there is no recipe \"{}\"; `verbatim recipes` lists them, and a file's name ends in .toml",
       name_or_path);
}

}  // namespace verbatim
