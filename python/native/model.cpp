#include "model.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "arguments.h"
#include "errors.h"
#include "load.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

/// The models that may still be open, to be closed when the interpreter ends.
struct Register {
  std::mutex mutex;
  std::vector<std::weak_ptr<LoadedModel>> models;
};

Register& the_register() {
  static auto* const models = new Register;  // never destroyed: a model may go later than it would
  return *models;
}

std::shared_ptr<LoadedModel> registered(std::shared_ptr<LoadedModel> model) {
  const std::lock_guard lock(the_register().mutex);
  std::erase_if(the_register().models, [](const auto& each) { return each.expired(); });
  the_register().models.push_back(model);
  return model;
}

/// Closes a model without the interpreter's lock, which is held, or with it when the interpreter is ending:
/// there is nothing left to wait for then.
void close_unlocked(LoadedModel& model) {
  std::optional<Unlocked> released;
  if (!ending()) released.emplace();
  model.close();
}

/// Closes all models. The interpreter's lock is held, and released meanwhile.
void close_registered() {
  std::vector<std::weak_ptr<LoadedModel>> models;
  {
    const std::lock_guard lock(the_register().mutex);
    models.swap(the_register().models);
  }
  const py::gil_scoped_release released;
  for (const auto& each : models) {
    if (const auto model = each.lock()) model->close();
  }
}

/// Ends whatever this module does, when the interpreter ends.
void end_all() {
  close_registered();  // first, so that threads that wait for answers get them, with what there is of them
  end_computing();
  close_registered();  // what was loaded meanwhile
}

}  // namespace

LoadedModel::LoadedModel(Model model, std::optional<Model> draft_model, std::unique_ptr<Engine> engine,
                         std::vector<Recipe> recipes, int32_t threads)
    : model_(std::move(model)),
      draft_model_(std::move(draft_model)),
      engine_(std::move(engine)),
      recipes_(std::move(recipes)),
      threads_(threads),
      process_(getpid()) {}

LoadedModel::~LoadedModel() {
  if (PyGILState_Check() != 0) close_unlocked(*this);
}

Model LoadedModel::model() const {
  const std::lock_guard lock(mutex_);
  if (!model_) refuse_use("the model is closed: load it again");
  return *model_;
}

std::optional<Model> LoadedModel::draft_model() const {
  const std::lock_guard lock(mutex_);
  return draft_model_;
}

std::shared_ptr<Engine> LoadedModel::engine() const {
  const std::lock_guard lock(mutex_);
  refuse_in_fork_of(process_);
  if (engine_ == nullptr) refuse_use("the model is closed: load it again");
  return engine_;
}

Recipe LoadedModel::recipe(const std::string& name) const {
  if (name.empty()) return recipes_.front();
  for (const Recipe& recipe : recipes_) {
    if (recipe.name == name) return recipe;
  }
  Recipe recipe = load_recipe(name);
  recipe.cache = recipes_.front().cache;
  return recipe;
}

std::shared_ptr<Answer> LoadedModel::ask(std::vector<int32_t> prompt, ChosenOptions options,
                                         Answer::Wakes wakes, std::shared_ptr<Waker> waker) {
  Recipe chosen = recipe(options.recipe);
  const std::shared_ptr<Engine> engine = this->engine();
  Request request = request_of(std::move(prompt), std::move(options), std::move(chosen));
  return Answer::ask(shared_from_this(), *engine, std::move(request), wakes, std::move(waker));
}

void LoadedModel::close() {
  std::optional<Model> model;
  std::optional<Model> draft_model;
  std::shared_ptr<Engine> engine;
  const std::lock_guard lock(mutex_);
  model.swap(model_);
  draft_model.swap(draft_model_);
  engine.swap(engine_);
  // Destroying an engine waits for its threads, which a forked process has not.
  if (process_ != getpid() && engine != nullptr) new std::shared_ptr<Engine>(std::move(engine));
}

bool LoadedModel::closed() const {
  const std::lock_guard lock(mutex_);
  return !model_;
}

namespace {

std::shared_ptr<Answer> ask_model(LoadedModel& model, const char* function, py::handle prompt,
                                  const py::dict& arguments, bool pieces) {
  ChosenOptions options = chosen_options(function, arguments);
  std::vector<int32_t> tokens = prompt_of(model.model(), prompt, "prompt");
  const auto wakes = pieces ? Answer::Wakes::kPieces : Answer::Wakes::kEnd;
  const Unlocked released;
  return model.ask(std::move(tokens), std::move(options), wakes, std::make_shared<Waker>());
}

/// Answers to many prompts, which share one waker, so that they take one file descriptor.
std::vector<std::shared_ptr<Answer>> ask_all(LoadedModel& model, const char* function,
                                             const py::list& prompts, const py::dict& arguments) {
  const ChosenOptions options = chosen_options(function, arguments);
  std::vector<std::vector<int32_t>> all;
  for (const py::handle prompt : prompts) all.push_back(prompt_of(model.model(), prompt, "prompts"));
  const auto waker = std::make_shared<Waker>();
  std::vector<std::shared_ptr<Answer>> answers;
  const Unlocked released;
  for (std::vector<int32_t>& prompt : all) {
    answers.push_back(model.ask(std::move(prompt), options, Answer::Wakes::kEnd, waker));
  }
  return answers;
}

std::vector<int32_t> tokenize(const LoadedModel& model, py::handle text, bool add_bos) {
  const std::string bytes = text_of(text, "text");
  const Unlocked released;
  return model.model().encode(bytes, add_bos);
}

}  // namespace

void bind_models(py::module_& module) {
  py::class_<LoadedModel, std::shared_ptr<LoadedModel>> models(module, "Model", "A model with its engine.");
  models.def_static(
      "load", [](py::handle path, const py::dict& arguments) { return registered(load(path, arguments)); },
      py::arg("path"), py::arg("arguments"));
  models.def("ask", ask_model, py::arg("function"), py::arg("prompt"), py::arg("arguments"),
             py::arg("pieces"));
  models.def("ask_all", ask_all, py::arg("function"), py::arg("prompts"), py::arg("arguments"));
  models.def("tokenize", tokenize, py::arg("text"), py::arg("add_bos"));
  models.def("detokenize", [](const LoadedModel& model, py::handle tokens) {
    return str_of(model.model().decode(tokens_of(tokens, "tokens")));
  });
  models.def("piece", [](const LoadedModel& model, py::handle token) {
    return str_of(model.model().piece(static_cast<int32_t>(whole_of(token, "token", INT32_MIN, INT32_MAX))));
  });
  models.def("find_token", [](const LoadedModel& model, py::handle piece) {
    return model.model().find_token(text_of(piece, "piece"));
  });
  models.def("close", close_unlocked);
  models.def("stats", [](const LoadedModel& model) { return model.engine()->stats(); });
  models.def_property_readonly("closed", &LoadedModel::closed);
  models.def_property_readonly("context", [](const LoadedModel& model) { return model.model().context(); });
  models.def_property_readonly("vocab_size",
                               [](const LoadedModel& model) { return model.model().vocab_size(); });
  models.def_property_readonly("bos_token",
                               [](const LoadedModel& model) { return model.model().bos_token(); });
  models.def_property_readonly("eos_tokens",
                               [](const LoadedModel& model) { return model.model().eos_tokens(); });
  models.def_property_readonly("recipe",
                               [](const LoadedModel& model) { return str_of(model.recipe({}).name); });
  models.def_property_readonly("warnings", [](const LoadedModel& model) {
    py::list warnings;
    for (const std::string& warning : model.model().warnings()) warnings.append(str_of(warning));
    return warnings;
  });
  bind_evaluation(models);
  py::module_::import("atexit").attr("register")(py::cpp_function(end_all));
}

}  // namespace verbatim::python
