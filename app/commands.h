#pragma once

namespace CLI {
class App;
}

namespace verbatim::app {

// Each adds its command to the program: its options, its help and what it does. A command's work runs inside
// CLI11's callback; errors leave it as verbatim::Error.
void add_generate(CLI::App& program);
void add_chat(CLI::App& program);
void add_inspect(CLI::App& program);
void add_recipes(CLI::App& program);
void add_demo(CLI::App& program);
void add_inflate(CLI::App& program);
void add_pack(CLI::App& program);
void add_quantize(CLI::App& program);
void add_ngrams(CLI::App& program);
void add_bench(CLI::App& program);
void add_eval(CLI::App& program);

// The commands of the group `bench`.
void add_bench_decode(CLI::App& bench);
void add_bench_throughput(CLI::App& bench);

// The commands of the group `eval`.
void add_eval_perplexity(CLI::App& eval);

}  // namespace verbatim::app
