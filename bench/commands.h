#pragma once

#include "app/command_line.h"

namespace verbatim::bench {

// Each adds its command to the program `verbatim-bench`: its options, its help and what it does.
void add_kernels(app::Command program);
void add_passes(app::Command program);
void add_attention(app::Command program);
void add_context(app::Command program);
void add_sweep(app::Command program);
void add_drafting(app::Command program);
void add_masks(app::Command program);
void add_structures(app::Command program);
void add_texts(app::Command program);
/// Only in builds with the agent.
void add_agent(app::Command program);

}  // namespace verbatim::bench
