#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace verbatim::python {

/// Makes verbatim.Error and its subclasses, one for each kind of Error, and lets every Error that leaves a
/// function of the module become one of them.
void bind_errors(pybind11::module_& module);

/// Throws an Error(kUsage) with a message.
[[noreturn]] void refuse_use(const std::string& message);

}  // namespace verbatim::python
