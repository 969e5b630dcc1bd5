#include "arguments.h"

#include <limits>

#include "errors.h"
#include "waiting.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

[[noreturn]] void wrong_type(py::handle value, const char* name, const char* expected) {
  throw py::type_error(std::string(name) + ": " + expected + " is expected, not " +
                       Py_TYPE(value.ptr())->tp_name);
}

/// Objects that count as a whole number: int, and NumPy's, but neither bool nor float.
py::object index_of(py::handle value, const char* name) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) wrong_type(value, name, "a whole number");
  auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!whole) throw py::error_already_set();
  return whole;
}

[[noreturn]] void out_of_range(py::handle value, const char* name, const std::string& range) {
  refuse_use(std::string(name) + " is " + py::str(value).cast<std::string>() + "; it must be " + range);
}

/// A sequence, which a str, bytes or a mapping is not.
py::object sequence_of(py::handle value, const char* name, const char* expected) {
  const bool text = PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()) || PyDict_Check(value.ptr());
  auto sequence = text ? py::object() : py::reinterpret_steal<py::object>(PySequence_Fast(value.ptr(), ""));
  if (sequence) return sequence;
  if (!text && !PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
  PyErr_Clear();
  wrong_type(value, name, expected);
}

}  // namespace

std::string text_of(py::handle value, const char* name) {
  if (!PyUnicode_Check(value.ptr())) wrong_type(value, name, "a str");
  Py_ssize_t size = 0;
  if (const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size)) {
    return {text, static_cast<size_t>(size)};
  }
  PyErr_Clear();
  const auto bytes =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw py::error_already_set();
  return bytes;
}

py::str str_of(std::string_view text) {
  auto str = py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (!str) throw py::error_already_set();
  return str;
}

std::filesystem::path path_of(py::handle value, const char* name) {
  PyObject* converted = nullptr;
  if (PyUnicode_FSConverter(value.ptr(), &converted) == 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();
    wrong_type(value, name, "a path");
  }
  return std::string(py::reinterpret_steal<py::bytes>(converted));
}

int64_t whole_of(py::handle value, const char* name, int64_t least, int64_t most) {
  const py::object whole = index_of(value, name);
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow == 0 && number >= least && number <= most) return number;
  if (most == std::numeric_limits<int64_t>::max() && overflow <= 0) {
    out_of_range(value, name, "at least " + std::to_string(least));
  }
  out_of_range(value, name, "from " + std::to_string(least) + " to " + std::to_string(most));
}

uint64_t unsigned_of(py::handle value, const char* name) {
  const py::object whole = index_of(value, name);
  const uint64_t number = PyLong_AsUnsignedLongLong(whole.ptr());
  if (PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  out_of_range(value, name, "from 0 to 18446744073709551615");
}

double number_of(py::handle value, const char* name) {
  const bool number = PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) ||
                      (Py_TYPE(value.ptr())->tp_as_number != nullptr &&
                       Py_TYPE(value.ptr())->tp_as_number->nb_float != nullptr);
  if (PyBool_Check(value.ptr()) || !number) wrong_type(value, name, "a number");
  const double result = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() == nullptr) return result;
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw py::error_already_set();
  PyErr_Clear();
  return std::numeric_limits<double>::infinity();
}

bool truth_of(py::handle value, const char* name) {
  if (!PyBool_Check(value.ptr())) wrong_type(value, name, "True or False");
  return value.ptr() == Py_True;
}

std::vector<std::string> texts_of(py::handle value, const char* name) {
  if (PyUnicode_Check(value.ptr())) return {text_of(value, name)};
  std::vector<std::string> texts;
  for (const py::handle each : sequence_of(value, name, "a str or a sequence of them")) {
    texts.push_back(text_of(each, name));
  }
  return texts;
}

std::vector<int32_t> tokens_of(py::handle value, const char* name) {
  std::vector<int32_t> tokens;
  for (const py::handle each : sequence_of(value, name, "a sequence of tokens")) {
    tokens.push_back(static_cast<int32_t>(whole_of(each, name, 0, std::numeric_limits<int32_t>::max())));
  }
  return tokens;
}

std::vector<int32_t> prompt_of(const Model& model, py::handle value, const char* name, bool begins) {
  if (!PyUnicode_Check(value.ptr())) {
    const bool other =
        PyBytes_Check(value.ptr()) || PyDict_Check(value.ptr()) || !PySequence_Check(value.ptr());
    if (other) wrong_type(value, name, "a str or a sequence of tokens");
    return tokens_of(value, name);
  }
  const std::string text = text_of(value, name);
  const Unlocked released;
  return model.encode(text, begins);
}

}  // namespace verbatim::python
