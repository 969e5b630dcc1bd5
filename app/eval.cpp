#include "command_line.h"
#include "commands.h"

namespace verbatim::app {

void add_eval(Command program) {
  Command eval = program.add_group("eval", "Measure how well a model does, and what it expects");
  eval.footer("Examples:\n  verbatim eval perplexity --help\n  verbatim eval logits --help");
  add_eval_perplexity(eval);
  add_eval_logits(eval);
}

}  // namespace verbatim::app
