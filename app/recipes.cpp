#include <fmt/core.h>

#include "commands.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

std::string needs(const Recipe& recipe) {
  if (recipe.plain()) return "nothing";
  return fmt::format("weights in {}", recipe.formats().back());
}

void list_recipes() {
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    fmt::print("{:<12} {}\n", name, recipe.summary);
    fmt::print("{:<12} needs: {}; {}\n", "", needs(recipe), recipe.lossless() ? "lossless" : "lossy");
    fmt::print("{:<12} from:  {}\n", "", recipe.source);
  }
}

}  // namespace

void add_recipes(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("recipes", "List the ways to decode");
  command->footer("Example:\n  verbatim recipes");
  command->callback(list_recipes);
}

}  // namespace verbatim::app
