#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace verbatim::app {

/// Adds an option that takes several values with commas between.
template <typename T>
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<T>& values, const char* what) {
  return command.add_option(name, values, what)->delimiter(',')->allow_extra_args(false);
}

}  // namespace verbatim::app
