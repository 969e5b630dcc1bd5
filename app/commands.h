#pragma once

#include <CLI/CLI.hpp>

namespace verbatim::app {

// Each adds its command to the program: its options, its help and what it does. A command's work runs inside
// CLI11's callback; errors leave it as verbatim::Error.
void add_generate(CLI::App& program);
void add_chat(CLI::App& program);
void add_inspect(CLI::App& program);
void add_recipes(CLI::App& program);
void add_demo(CLI::App& program);
void add_inflate(CLI::App& program);

}  // namespace verbatim::app
