#include "errors.h"

#include <unistd.h>

#include "verbatim/error.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

// The module keeps these for as long as the interpreter lives.
PyObject* bad_input_error = nullptr;
PyObject* usage_error = nullptr;
PyObject* machine_error = nullptr;

PyObject* make_error(py::module_& module, const char* name, const char* doc, PyObject* base, int exit_code) {
  const std::string whole_name = std::string("verbatim.") + name;
  PyObject* const error = PyErr_NewExceptionWithDoc(whole_name.c_str(), doc, base, nullptr);
  if (error == nullptr) throw py::error_already_set();
  module.attr(name) = py::reinterpret_borrow<py::object>(error);
  py::handle(error).attr("exit_code") = exit_code;
  return error;
}

PyObject* error_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadInput:
      return bad_input_error;
    case ErrorKind::kMachine:
      return machine_error;
    default:
      return usage_error;
  }
}

void set_error(PyObject* type, const char* line) {
  // A line may name a file whose name is no UTF-8.
  PyObject* const text = PyUnicode_DecodeUTF8(
      line, static_cast<Py_ssize_t>(std::char_traits<char>::length(line)), "backslashreplace");
  if (text == nullptr) return;
  PyErr_SetObject(type, text);
  Py_DECREF(text);
}

}  // namespace

void bind_errors(py::module_& module) {
  PyObject* const base =
      make_error(module, "Error",
                 "What Verbatim could not do. The message is one line that says what is wrong, "
                 "where, and what to do about it: the line that the program says.",
                 PyExc_Exception, static_cast<int>(ErrorKind::kBadInput));
  bad_input_error = make_error(module, "BadInputError", "A file, a prompt or a setting in a file is wrong.",
                               base, static_cast<int>(ErrorKind::kBadInput));
  usage_error =
      make_error(module, "UsageError", "A function was called wrongly: an option is out of range, say.", base,
                 static_cast<int>(ErrorKind::kUsage));
  machine_error =
      make_error(module, "MachineError", "The machine lacks something: memory, an instruction set.", base,
                 static_cast<int>(ErrorKind::kMachine));
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_error(error_of(error.kind()), error.what());
    }
  });
}

void refuse_use(const std::string& message) {
  throw Error(ErrorKind::kUsage, message);
}

void refuse_in_fork_of(pid_t process) {
  if (process != getpid()) refuse_use("the model was loaded before this process was forked: load it here");
}

}  // namespace verbatim::python
