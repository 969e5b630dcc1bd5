#include "commands.h"

#include <CLI/CLI.hpp>

namespace verbatim::app {

void add_eval(CLI::App& program) {
  CLI::App* const eval = program.add_subcommand("eval", "Measure how well a model does");
  eval->require_subcommand(1);
  eval->footer("Example:\n  verbatim eval perplexity --help");
  add_eval_perplexity(*eval);
  for (CLI::App* const command : eval->get_subcommands({})) {
    command->group("Commands");
    command->set_help_flag("-h,--help", "Show this and exit");
  }
}

}  // namespace verbatim::app
