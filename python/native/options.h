#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "verbatim/engine.h"

namespace verbatim::python {

/// What the keyword arguments of a generation say.
struct ChosenOptions {
  GenerateOptions generate;
  std::string recipe;  ///< empty: the model's
  std::optional<std::string> schema;
  std::optional<std::string> regex;
  int32_t priority = 0;
  std::optional<std::chrono::duration<double>> timeout;
};

/// Reads keyword arguments. Throws TypeError, naming `function` and the argument, for an argument that there
/// is not and for a value of another type, and Error(kUsage) for a value that no option can have.
ChosenOptions chosen_options(const char* function, const pybind11::dict& arguments);

/// The names of all keyword arguments.
std::vector<std::string> option_names();

/// A request for the continuation of a prompt. To be called without the interpreter's lock, as a structure
/// may take a while.
Request request_of(std::vector<int32_t> prompt, ChosenOptions options, Recipe recipe);

}  // namespace verbatim::python
