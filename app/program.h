#pragma once

#include "command_line.h"

namespace verbatim::app {

/// What tells one program that shares main.cpp from another: `verbatim`, and `verbatim-bench`, which is its
/// laboratory.
struct Program {
  const char* name;         ///< as people call it; its messages begin with it
  const char* description;  ///< the first line of its help
  const char* footer;       ///< the last lines of its help, with examples
  void (*add_commands)(Command program);
};

/// This program; each program defines it once.
extern const Program kProgram;

}  // namespace verbatim::app
