#include <fmt/format.h>

#include "command_line.h"
#include "commands.h"
#include "describe_recipe.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

constexpr size_t kIndent = 19;
constexpr size_t kWidth = 100;

/// Adds words after a name and a label, lines that are too long below them.
void add_wrapped(std::string& out, std::string_view name, std::string_view label, std::string_view words) {
  std::string head = fmt::format("{:<{}}{}", name, kIndent, label);
  const std::string margin(head.size(), ' ');
  while (head.size() + words.size() > kWidth) {
    const size_t end = words.rfind(' ', kWidth - head.size());
    if (end == std::string_view::npos) break;
    out += fmt::format("{}{}\n", head, words.substr(0, end));
    words.remove_prefix(end + 1);
    head = margin;
  }
  out += fmt::format("{}{}\n", head, words);
}

void list_recipes() {
  std::string out;
  for (const std::string& name : recipe_names()) {
    if (!out.empty()) out += "\n";
    const Recipe recipe = load_recipe(name);
    add_wrapped(out, name, "", recipe.summary);
    const std::string drafts = drafts_words(recipe);
    if (!drafts.empty()) add_wrapped(out, "", "drafts:  ", drafts);
    add_wrapped(out, "", "needs:   ", needs_words(recipe));
    add_wrapped(out, "", "promise: ", guarantee_words(recipe));
    add_wrapped(out, "", "from:    ", recipe.source);
  }
  write_out(out);
}

}  // namespace

void add_recipes(Command program) {
  Command command = program.add_command("recipes", "List the ways to decode");
  command.footer(
      "`drafts` says what proposes tokens, from the model downwards, `needs` what it takes beside the "
      "model,\n"
      "and `promise` what of plain decoding holds for the text.\n"
      "\n"
      "Example:\n"
      "  verbatim recipes");
  command.callback(list_recipes);
}

}  // namespace verbatim::app
