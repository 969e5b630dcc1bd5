#include "program.h"

#include "command_line.h"
#include "commands.h"

namespace verbatim::app {

namespace {

void add_commands(Command program) {
  add_generate(program);
  add_chat(program);
#ifdef VERBATIM_SERVER
  add_serve(program);
#endif
#ifdef VERBATIM_WITH_AGENT
  add_agent(program);
#endif
  add_inspect(program);
  add_recipes(program);
  add_demo(program);
  add_pack(program);
  add_quantize(program);
  add_convert(program);
  add_inflate(program);
  add_ngrams(program);
  add_tokenize(program);
  add_bench(program);
  add_eval(program);
  add_simulate(program);
}

}  // namespace

const Program kProgram = {
    .name = "verbatim",
    .description = "Verbatim runs language models faster without changing a byte of what they say.",
    .footer =
        "MODEL is a directory in Hugging Face layout, a .gguf or a .vbt file.\n"
        "VERBATIM_ISA=scalar|avx2|avx512|amx|neon forces a lower instruction set than the machine's best;\n"
        "avx2-plain, avx512-plain and neon-plain are these without their dot products.\n"
        "VERBATIM_PORTABLE=1 computes so that every machine gives the same bytes, as --portable does.\n"
        "`verbatim COMMAND --help` shows a command's options and examples.\n"
        "\n"
        "Examples:\n"
        "  verbatim demo models/target\n"
        "  verbatim generate models/target -p 'def fibonacci(n):'\n"
        "  verbatim inspect models/target",
    .add_commands = add_commands};

}  // namespace verbatim::app
