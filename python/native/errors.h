#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <string>

namespace verbatim::python {

/// Makes verbatim.Error and its subclasses, one for each kind of Error, and lets every Error that leaves a
/// function of the module become one of them.
void bind_errors(pybind11::module_& module);

/// Throws an Error(kUsage) with a message.
[[noreturn]] void refuse_use(const std::string& message);

/// Throws an Error(kUsage) in any other process than the one that loaded a model: one that was forked from it
/// has none of the engine's threads.
void refuse_in_fork_of(pid_t process);

}  // namespace verbatim::python
