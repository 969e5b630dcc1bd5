#include "commands.h"
namespace verbatim::app {
void add_chat(CLI::App&) {}
}  // namespace verbatim::app
