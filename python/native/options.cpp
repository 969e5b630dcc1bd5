#include "options.h"

#include <cmath>
#include <limits>
#include <utility>

#include "arguments.h"
#include "errors.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

constexpr int64_t kLargestWhole = std::numeric_limits<int32_t>::max();

float float_of(py::handle value, const char* name) {
  return static_cast<float>(number_of(value, name));
}

std::vector<LogitBias> biases_of(py::handle value, const char* name) {
  if (!PyDict_Check(value.ptr())) {
    throw py::type_error(std::string(name) + ": a dict of tokens and numbers is expected, not " +
                         Py_TYPE(value.ptr())->tp_name);
  }
  std::vector<LogitBias> biases;
  for (const auto& [token, bias] : py::reinterpret_borrow<py::dict>(value)) {
    biases.push_back({static_cast<int32_t>(whole_of(token, name, 0, kLargestWhole)), float_of(bias, name)});
  }
  return biases;
}

/// A JSON schema as text, or as the object that json.loads() makes of it.
std::string schema_of(py::handle value, const char* name) {
  if (PyUnicode_Check(value.ptr())) return text_of(value, name);
  if (PyDict_Check(value.ptr())) return text_of(py::module_::import("json").attr("dumps")(value), name);
  throw py::type_error(std::string(name) + ": a dict or a str of JSON is expected, not " +
                       Py_TYPE(value.ptr())->tp_name);
}

std::chrono::duration<double> duration_of(py::handle value, const char* name) {
  const double seconds = number_of(value, name);
  // Beyond a century nobody waits, and the clock cannot count.
  if (seconds >= 0.0 && seconds <= 3e9) return std::chrono::duration<double>(seconds);
  refuse_use(std::string(name) + " is " + py::str(value).cast<std::string>() +
             "; it must be a number of seconds from 0 to 3000000000");
}

struct Option {
  const char* name;
  void (*set)(ChosenOptions& options, py::handle value, const char* name);
};

constexpr Option kOptions[] = {
    {"max_tokens", [](auto& o, auto v, auto n) { o.generate.max_tokens = whole_of(v, n, 0); }},
    {"temperature", [](auto& o, auto v, auto n) { o.generate.sampling.temperature = float_of(v, n); }},
    {"top_k",
     [](auto& o, auto v, auto n) {
       o.generate.sampling.top_k = static_cast<int32_t>(whole_of(v, n, -kLargestWhole, kLargestWhole));
     }},
    {"top_p", [](auto& o, auto v, auto n) { o.generate.sampling.top_p = float_of(v, n); }},
    {"min_p", [](auto& o, auto v, auto n) { o.generate.sampling.min_p = float_of(v, n); }},
    {"repetition_penalty",
     [](auto& o, auto v, auto n) { o.generate.sampling.repetition_penalty = float_of(v, n); }},
    {"presence_penalty",
     [](auto& o, auto v, auto n) { o.generate.sampling.presence_penalty = float_of(v, n); }},
    {"frequency_penalty",
     [](auto& o, auto v, auto n) { o.generate.sampling.frequency_penalty = float_of(v, n); }},
    {"seed", [](auto& o, auto v, auto n) { o.generate.sampling.seed = unsigned_of(v, n); }},
    {"logit_bias", [](auto& o, auto v, auto n) { o.generate.sampling.logit_bias = biases_of(v, n); }},
    {"stop", [](auto& o, auto v, auto n) { o.generate.stop = texts_of(v, n); }},
    {"stop_tokens", [](auto& o, auto v, auto n) { o.generate.stop_tokens = tokens_of(v, n); }},
    {"shown_tokens", [](auto& o, auto v, auto n) { o.generate.shown_tokens = tokens_of(v, n); }},
    {"ignore_eos", [](auto& o, auto v, auto n) { o.generate.ignore_eos = truth_of(v, n); }},
    {"schema", [](auto& o, auto v, auto n) { o.schema = schema_of(v, n); }},
    {"regex", [](auto& o, auto v, auto n) { o.regex = text_of(v, n); }},
    {"top_logprobs",
     [](auto& o, auto v, auto n) {
       o.generate.top_logprobs = static_cast<int32_t>(whole_of(v, n, 0, kMostTopLogprobs));
     }},
    {"origins", [](auto& o, auto v, auto n) { o.generate.origins = truth_of(v, n); }},
    {"prefill_chunk", [](auto& o, auto v, auto n) { o.generate.prefill_chunk = whole_of(v, n, 1); }},
    {"recipe", [](auto& o, auto v, auto n) { o.recipe = text_of(v, n); }},
    {"priority",
     [](auto& o, auto v, auto n) {
       o.priority = static_cast<int32_t>(whole_of(v, n, -kLargestWhole, kLargestWhole));
     }},
    {"timeout", [](auto& o, auto v, auto n) { o.timeout = duration_of(v, n); }},
};

/// Whether None means the same as leaving the argument out.
bool may_be_none(std::string_view name) {
  for (const char* const each : {"schema", "regex", "top_logprobs", "recipe", "timeout", "logit_bias"}) {
    if (name == each) return true;
  }
  return false;
}

}  // namespace

ChosenOptions chosen_options(const char* function, const py::dict& arguments) {
  ChosenOptions options;
  for (const auto& [key, value] : arguments) {
    const std::string name = text_of(key, "the name of an argument");
    const Option* found = nullptr;
    for (const Option& option : kOptions) {
      if (name == option.name) found = &option;
    }
    if (found == nullptr) {
      throw py::type_error(std::string(function) + "() got an unexpected keyword argument '" + name + "'");
    }
    if (!value.is_none() || !may_be_none(name)) found->set(options, value, found->name);
  }
  if (options.schema && options.regex) {
    refuse_use("a reply is held to a schema or to a regex: give one of the two");
  }
  return options;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.emplace_back(option.name);
  return names;
}

Request request_of(std::vector<int32_t> prompt, ChosenOptions options, Recipe recipe) {
  if (options.schema) options.generate.structure = Structure::json_schema(*options.schema);
  if (options.regex) options.generate.structure = Structure::regex(*options.regex);
  Request request;
  request.prompt = std::move(prompt);
  request.options = std::move(options.generate);
  request.recipe = std::move(recipe);
  request.priority = options.priority;
  if (options.timeout) {
    request.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(*options.timeout);
  }
  return request;
}

}  // namespace verbatim::python
