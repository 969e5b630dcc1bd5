#include "commands.h"
namespace verbatim::app {
void add_inspect(CLI::App&) {}
}  // namespace verbatim::app
