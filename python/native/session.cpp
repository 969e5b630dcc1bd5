#include "session.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "arguments.h"
#include "conversation.h"
#include "errors.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

/// The options of a generation without those that only an engine has a use for.
ChosenOptions options_of_session(const char* function, const py::dict& arguments) {
  for (const char* const name : {"priority", "timeout"}) {
    if (!arguments.contains(name)) continue;
    throw py::type_error(std::string(function) + "() got an unexpected keyword argument '" + name + "'");
  }
  return chosen_options(function, arguments);
}

void check_on_text(py::handle on_text) {
  if (on_text.is_none() || PyCallable_Check(on_text.ptr()) != 0) return;
  throw py::type_error(std::string("on_text: a function is expected, not ") +
                       Py_TYPE(on_text.ptr())->tp_name);
}

}  // namespace

HeldSession::Use::Use(HeldSession& held) : held_(held) {
  refuse_in_fork_of(held.process_);
  if (held.used_) {
    refuse_use("the session is being used by another call: a session is for one thread at a time");
  }
  if (!held.session_) refuse_use("the session is closed: make a new one");
  held.model_->model();  // throws if it is closed
  held.used_ = true;
}

HeldSession::HeldSession(std::shared_ptr<LoadedModel> model, int64_t capacity)
    : model_(std::move(model)), process_(getpid()) {
  const Unlocked released;
  session_.emplace(model_->model(), capacity, model_->threads());
  if (const std::optional<Model> drafts = model_->draft_model()) session_->set_draft_model(*drafts);
}

HeldSession::~HeldSession() {
  // A forked process has none of the threads that would be waited for.
  if (process_ != getpid() && session_) new Session(std::move(*session_));
}

std::shared_ptr<RecipeResult> HeldSession::run(const Use& session, std::vector<int32_t> prompt,
                                               ChosenOptions options, py::handle on_text) {
  cancelled_ = false;
  const Unlocked released;
  Recipe recipe = model_->recipe(options.recipe);
  Request request = request_of(std::move(prompt), std::move(options), std::move(recipe));
  request.options.cancelled = [this, check = SignalCheck()]() mutable {
    check();
    return cancelled_.load();
  };
  Session::OnText tell;
  if (!on_text.is_none()) {
    tell = [on_text](std::string_view text) {
      const py::gil_scoped_acquire locked;
      on_text(str_of(text));
    };
  }
  return std::make_shared<RecipeResult>(
      session->generate(request.prompt, request.options, request.recipe, tell), request.recipe);
}

std::shared_ptr<RecipeResult> HeldSession::generate(py::handle prompt, const py::dict& arguments,
                                                    py::handle on_text) {
  ChosenOptions options = options_of_session("generate", arguments);
  check_on_text(on_text);
  const Use session(*this);
  std::vector<int32_t> tokens = prompt_of(model_->model(), prompt, "prompt", session->tokens().empty());
  return run(session, std::move(tokens), std::move(options), on_text);
}

std::shared_ptr<RecipeResult> HeldSession::reply(const std::shared_ptr<LoadedModel>& model, const Chat& chat,
                                                 const py::dict& arguments, py::handle on_text) {
  ChosenOptions options = options_of_session("reply", arguments);
  check_on_text(on_text);
  if (model != model_) refuse_use("the conversation is with another model than the session");
  const Use session(*this);
  chat.add_stops(options.generate);
  const std::vector<int32_t>& history = chat.tokens();
  const std::vector<int32_t>& known = session->tokens();
  // The last token of the history is evaluated in any case: what follows it is what is asked for.
  const size_t most = history.empty() ? 0 : std::min(known.size(), history.size() - 1);
  const auto same =
      std::mismatch(known.begin(), known.begin() + static_cast<ptrdiff_t>(most), history.begin());
  std::vector<int32_t> missing(same.second, history.end());
  session->truncate(same.first - known.begin());
  return run(session, std::move(missing), std::move(options), on_text);
}

void HeldSession::truncate(int64_t length) {
  Use(*this)->truncate(length);
}

std::vector<int32_t> HeldSession::tokens() {
  return Use(*this)->tokens();
}

int64_t HeldSession::evaluated() {
  return Use(*this)->evaluated();
}

void HeldSession::save(const std::filesystem::path& path) {
  const Use session(*this);
  const Unlocked released;
  session->save(path);
}

void HeldSession::restore(const std::filesystem::path& path) {
  const Use session(*this);
  const Unlocked released;
  session->restore(path);
}

void HeldSession::close() {
  refuse_in_fork_of(process_);
  if (used_) refuse_use("the session is being used by another call: cancel it first");
  session_.reset();
}

void bind_sessions(py::module_& module) {
  py::class_<HeldSession>(module, "Session", "One sequence of a model.")
      .def(py::init([](std::shared_ptr<LoadedModel> model, py::handle capacity) {
             return std::make_unique<HeldSession>(std::move(model), whole_of(capacity, "capacity", 0));
           }),
           py::arg("model"), py::arg("capacity"))
      .def("generate", &HeldSession::generate, py::arg("prompt"), py::arg("arguments"), py::arg("on_text"))
      .def(
          "reply",
          [](HeldSession& session, const Talk& talk, const py::dict& arguments, py::handle on_text) {
            return session.reply(talk.model, talk.chat, arguments, on_text);
          },
          py::arg("talk"), py::arg("arguments"), py::arg("on_text"))
      .def("cancel", &HeldSession::cancel)
      .def(
          "truncate",
          [](HeldSession& session, py::handle length) { session.truncate(whole_of(length, "length", 0)); },
          py::arg("length"))
      .def(
          "save", [](HeldSession& session, py::handle path) { session.save(path_of(path, "path")); },
          py::arg("path"))
      .def(
          "restore", [](HeldSession& session, py::handle path) { session.restore(path_of(path, "path")); },
          py::arg("path"))
      .def("close", &HeldSession::close)
      .def_property_readonly("tokens", &HeldSession::tokens)
      .def_property_readonly("evaluated", &HeldSession::evaluated);
}

}  // namespace verbatim::python
