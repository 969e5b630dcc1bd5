#include "app/program.h"

#include "app/command_line.h"
#include "sensitivities_command.h"

namespace verbatim::app {

const Program kProgram = {
    .name = "verbatim-train",
    .description = "Computes what takes a model's gradients.",
    .footer =
        "Examples:\n"
        "  verbatim-train sensitivities models/target notes.txt -o target-sensitivities.safetensors\n"
        "  verbatim pack models/target -o target.vbt --formats squeeze3 --sensitivities "
        "target-sensitivities.safetensors",
    .add_commands = train::add_sensitivities};

}  // namespace verbatim::app
