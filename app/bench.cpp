#include "commands.h"

#include <CLI/CLI.hpp>

namespace verbatim::app {

void add_bench(CLI::App& program) {
  CLI::App* const bench =
      program.add_subcommand("bench", "Measure how fast this machine runs what it is given");
  bench->require_subcommand(1);
  bench->footer(
      "Examples:\n  verbatim bench decode --help\n  verbatim bench throughput --help\n"
      "`verbatim-bench` measures the parts: products, passes, caches, drafts.");
  add_bench_decode(*bench);
  add_bench_throughput(*bench);
  for (CLI::App* const command : bench->get_subcommands({})) {
    command->group("Commands");
    command->set_help_flag("-h,--help", "Show this and exit");
  }
}

}  // namespace verbatim::app
