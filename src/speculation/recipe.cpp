#include "verbatim/recipe.h"

#include <toml++/toml.h>
#include <fstream>
#include <initializer_list>
#include <sstream>

#include "base/error.h"
#include "formats/format.h"
#include "speculation/built_in_recipes.h"

namespace verbatim {

namespace {

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

double number(const toml::table& table, std::string_view key, double fallback, double low, double high,
              const std::string& where) {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return fallback;
  const auto value = node->value<double>();
  if (!value || !(*value >= low && *value <= high)) {
    bad_input("{}: \"{}\" must be a number from {} to {}", where, key, low, high);
  }
  return *value;
}

int32_t whole_number(const toml::table& table, std::string_view key, double fallback, double low, double high,
                     const std::string& where) {
  const double value = number(table, key, fallback, low, high, where);
  if (value != static_cast<int32_t>(value)) bad_input("{}: \"{}\" must be a whole number", where, key);
  return static_cast<int32_t>(value);
}

void read_drafter(Recipe& recipe, const toml::table& root, const std::string& where) {
  const toml::table* const drafter = sub_table(root, "drafter", where);
  const toml::table* const stop = sub_table(root, "stop", where);
  if (drafter == nullptr) {
    if (stop != nullptr) bad_input("{}: a stop rule needs a drafter", where);
    return;
  }
  allow_only(*drafter, {"kind", "reading"}, where);
  const std::string kind = text(*drafter, "kind", where);
  if (kind != "self") bad_input("{}: unknown drafter kind \"{}\"; known is self", where, kind);
  recipe.drafter = Recipe::Drafter::kSelf;
  recipe.draft_reading = text(*drafter, "reading", where);
  if (parse_reading(recipe.draft_reading, where) == Reading::kFull) {
    bad_input("{}: a draft in the reading \"full\" would cost what the verification costs", where);
  }
  recipe.draft_length = 8;
  if (stop == nullptr) return;
  allow_only(*stop, {"length", "threshold"}, where);
  recipe.draft_length = whole_number(*stop, "length", 8, 1, 64, where);
  recipe.draft_threshold = static_cast<float>(number(*stop, "threshold", 0.0, 0.0, 1.0, where));
}

}  // namespace

std::vector<std::string> Recipe::formats() const {
  if (draft_reading.empty()) return {"full"};
  const Format format = reading_format(parse_reading(draft_reading, name));
  // `bsfp` and `mxbf16` refuse weights that they cannot hold; `bf16` and `f16` round them, so what verifies
  // must not be read from these.
  const bool nested = is_exact(format) && readings(format).size() > 1;
  if (nested) return {std::string(format_name(format))};
  return {"full", std::string(format_name(format))};
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : built_in_recipes()) names.emplace_back(recipe.name);
  return names;
}

Recipe parse_recipe(std::string_view toml_text, const std::string& where) {
  toml::table root;
  try {
    root = toml::parse(toml_text);
  } catch (const toml::parse_error& error) {
    bad_input("{}: line {}: {}", where, error.source().begin.line, error.description());
  }
  allow_only(root, {"name", "summary", "source", "drafter", "stop"}, where);
  Recipe recipe;
  recipe.name = text(root, "name", where);
  recipe.summary = text(root, "summary", where);
  recipe.source = text(root, "source", where);
  read_drafter(recipe, root, where);
  return recipe;
}

Recipe load_recipe(const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) {
    std::ifstream file(name_or_path, std::ios::binary);
    if (!file) bad_input("cannot open the recipe {}", name_or_path);
    std::ostringstream contents;
    contents << file.rdbuf();
    return parse_recipe(contents.str(), name_or_path);
  }
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.name == name_or_path) return parse_recipe(recipe.toml, "recipe " + name_or_path);
  }
  bad_input("there is no recipe \"{}\"; `verbatim recipes` lists them, and a file's name ends in .toml",
            name_or_path);
}

}  // namespace verbatim
