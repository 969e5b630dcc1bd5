#include "app/program.h"

#include "app/command_line.h"
#include "bench/commands.h"

namespace verbatim::app {

namespace {

void add_commands(Command program) {
  bench::add_kernels(program);
  bench::add_passes(program);
  bench::add_attention(program);
  bench::add_context(program);
  bench::add_sweep(program);
  bench::add_drafting(program);
  bench::add_masks(program);
  bench::add_structures(program);
  bench::add_texts(program);
#ifdef VERBATIM_WITH_AGENT
  bench::add_agent(program);
#endif
}

}  // namespace

const Program kProgram = {
    .name = "verbatim-bench",
    .description = "Measures the parts of Verbatim: products, passes, caches, drafts.",
    .footer =
        "VERBATIM_ISA=scalar|avx2|avx512|amx|neon forces a lower instruction set than the machine's best;\n"
        "avx2-plain, avx512-plain and neon-plain are these without their dot products.\n"
        "VERBATIM_PORTABLE=1 computes so that every machine gives the same bytes, as --portable does.\n"
        "`verbatim-bench COMMAND --help` shows a command's options and examples. `verbatim bench` tells "
        "which recipe\n"
        "is fastest for a model.\n"
        "\n"
        "Examples:\n"
        "  verbatim-bench kernels --help\n"
        "  verbatim-bench passes models/target\n"
        "  verbatim-bench sweep --help",
    .add_commands = add_commands};

}  // namespace verbatim::app
