#include "command_line.h"
#include "commands.h"

namespace verbatim::app {

void add_eval(Command program) {
  Command eval = program.add_group("eval", "Measure how well a model does");
  eval.footer("Example:\n  verbatim eval perplexity --help");
  add_eval_perplexity(eval);
}

}  // namespace verbatim::app
