#pragma once

namespace CLI {
class App;
}

namespace verbatim::bench {

// Each adds its command to the program `verbatim-bench`: its options, its help and what it does.
void add_kernels(CLI::App& program);
void add_passes(CLI::App& program);
void add_attention(CLI::App& program);
void add_context(CLI::App& program);
void add_sweep(CLI::App& program);
void add_drafting(CLI::App& program);

}  // namespace verbatim::bench
