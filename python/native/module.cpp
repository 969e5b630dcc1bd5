#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "arguments.h"
#include "errors.h"
#include "model.h"
#include "options.h"
#include "results.h"
#include "session.h"
#include "waiting.h"

PYBIND11_MODULE(_native, module) {
  namespace py = pybind11;
  using namespace verbatim::python;
  module.doc() = "What the package verbatim is made of. It is no interface: use the package.";
  bind_errors(module);
  bind_results(module);
  bind_answers(module);
  bind_models(module);
  bind_conversations(module);
  bind_sessions(module);
  module.def("version", &verbatim::version);
  module.def("recipe_names", &verbatim::recipe_names);
  module.def("option_names", &option_names);
  module.def("use_portable_kernels", &verbatim::use_portable_kernels, py::call_guard<Unlocked>());
}
