#include <fmt/core.h>

#include "commands.h"
#include "describe_recipe.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

constexpr size_t kIndent = 19;
constexpr size_t kWidth = 100;

/// Prints words after a name and a label, lines that are too long below them.
void print_wrapped(std::string_view name, std::string_view label, std::string_view words) {
  std::string head = fmt::format("{:<{}}{}", name, kIndent, label);
  const std::string margin(head.size(), ' ');
  while (head.size() + words.size() > kWidth) {
    const size_t end = words.rfind(' ', kWidth - head.size());
    if (end == std::string_view::npos) break;
    fmt::print("{}{}\n", head, words.substr(0, end));
    words.remove_prefix(end + 1);
    head = margin;
  }
  fmt::print("{}{}\n", head, words);
}

void list_recipes() {
  bool first = true;
  for (const std::string& name : recipe_names()) {
    if (!first) fmt::print("\n");
    first = false;
    const Recipe recipe = load_recipe(name);
    print_wrapped(name, "", recipe.summary);
    const std::string drafts = drafts_words(recipe);
    if (!drafts.empty()) print_wrapped("", "drafts:  ", drafts);
    print_wrapped("", "needs:   ", needs_words(recipe));
    print_wrapped("", "promise: ", guarantee_words(recipe));
    print_wrapped("", "from:    ", recipe.source);
  }
}

}  // namespace

void add_recipes(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("recipes", "List the ways to decode");
  command->footer(
      "`drafts` says what proposes tokens, from the model downwards, `needs` what it takes beside the "
      "model,\n"
      "and `promise` what of plain decoding holds for the text.\n"
      "\n"
      "Example:\n"
      "  verbatim recipes");
  command->callback(list_recipes);
}

}  // namespace verbatim::app
