#pragma once

#include "app/command_line.h"

namespace verbatim::train {

/// Adds the command `sensitivities` to the program.
void add_sensitivities(app::Command program);

}  // namespace verbatim::train
