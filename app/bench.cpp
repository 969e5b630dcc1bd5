#include "command_line.h"
#include "commands.h"

namespace verbatim::app {

void add_bench(Command program) {
  Command bench = program.add_group("bench", "Measure how fast this machine runs what it is given");
  bench.footer(
      "Examples:\n  verbatim bench decode --help\n  verbatim bench throughput --help\n"
      "`verbatim-bench` measures the parts: products, passes, caches, drafts.");
  add_bench_decode(bench);
  add_bench_throughput(bench);
}

}  // namespace verbatim::app
