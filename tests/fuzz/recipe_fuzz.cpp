// Any text as a recipe: an Error, or a recipe that holds up and is the same when it is read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "formats/format.h"
#include "verbatim/error.h"
#include "verbatim/recipe.h"

namespace {

using namespace verbatim;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_level(const DraftLevel& level) {
  require(level.length >= 1 && level.length <= 64);
  require(level.threshold >= 0.0f && level.threshold <= 1.0f);
  require(level.breadth >= 1 && level.breadth <= 8);
  require(level.nodes >= 0 && level.nodes <= 64);
  require(level.layers >= 0 && level.experts >= 0 && level.vocabulary >= 0);
  require(level.shortest_match >= 1 && level.shortest_match <= level.longest_match);
  if (level.kind != DraftLevel::Kind::kNgram) parse_reading(level.reading, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<Recipe> recipe;
  try {
    recipe = parse_recipe(text, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  // Outside the try: what was returned must hold up.
  for (size_t i = 0; i < recipe->levels.size(); ++i) {
    check_level(recipe->levels[i]);
    require(i + 1 == recipe->levels.size() || recipe->levels[i].kind != DraftLevel::Kind::kNgram);
  }
  require(recipe->plain() == recipe->levels.empty());
  require(recipe->rollback >= 0.0f);
  require(!recipe->formats().empty());
  require(recipe->draft_model_formats().empty() || !recipe->plain());
  require(recipe->lossless() == (recipe->guarantee() == "bytes"));
  require(parse_recipe(text, "fuzz") == *recipe);
  return 0;
}
