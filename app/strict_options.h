#pragma once

#include <utility>

#include "verbatim/error.h"

namespace CLI {
class App;
}

namespace verbatim::app {

/// Has all options of the program and its commands take their values strictly: a number is written in decimal
/// digits and is finite and within its type, and no value is empty unless an empty text means something.
void make_strict(CLI::App& program);

/// Throws Error(kUsage) when an option that takes several values, with commas between, is given a list with
/// an empty item. The parser would pass over it and blame what follows.
void check_lists(const CLI::App& program, int argc, const char* const* argv);

/// Calls read() on a value that stands on the command line itself, where what would be bad input in a file is
/// wrong usage.
template <typename Read>
auto from_command_line(Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadInput) throw;
    throw Error(ErrorKind::kUsage, error.what());
  }
}

}  // namespace verbatim::app
