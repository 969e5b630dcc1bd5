#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "model.h"

namespace verbatim::python {

/// Loads a model as the keyword arguments of Model.load() say. Throws TypeError and Error as chosen_options()
/// does, and what the handler of a signal or the function `progress` throws.
std::shared_ptr<LoadedModel> load(pybind11::handle path, const pybind11::dict& arguments);

}  // namespace verbatim::python
