#pragma once

#include "command_line.h"

namespace verbatim::app {

// Each adds its command to the program: its options, its help and what it does. A command's work runs in
// its callback; errors leave it as verbatim::Error.
void add_generate(Command program);
void add_chat(Command program);
/// Only in programs that are built with the server.
void add_serve(Command program);
/// Only in programs that are built with the agent.
void add_agent(Command program);
void add_inspect(Command program);
void add_recipes(Command program);
void add_demo(Command program);
void add_convert(Command program);
void add_inflate(Command program);
void add_pack(Command program);
void add_quantize(Command program);
void add_ngrams(Command program);
void add_tokenize(Command program);
void add_bench(Command program);
void add_eval(Command program);
void add_simulate(Command program);

// The commands of the group `bench`.
void add_bench_decode(Command bench);
void add_bench_throughput(Command bench);

// The commands of the group `eval`.
void add_eval_perplexity(Command eval);
void add_eval_logits(Command eval);

}  // namespace verbatim::app
