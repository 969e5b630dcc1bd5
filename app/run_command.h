#pragma once

namespace verbatim::app {

/// Reads the command line of kProgram and runs the command that it names. Returns the exit code of a command
/// that has written all its messages. Throws Error(kUsage) when the command line is wrong, and the errors of
/// the command.
int run_command(int argc, const char* const* argv);

}  // namespace verbatim::app
