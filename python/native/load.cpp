#include "load.h"

#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "arguments.h"
#include "errors.h"

namespace verbatim::python {

namespace py = pybind11;

namespace {

struct LoadArguments {
  std::filesystem::path path = {};
  std::vector<std::string> recipes = {};
  std::vector<std::string> formats = {};
  std::string cache = {};
  std::filesystem::path draft_model = {};
  EngineOptions engine = {};
  py::object progress = {};
};

int32_t small_of(py::handle value, const char* name) {
  return static_cast<int32_t>(whole_of(value, name, 0, std::numeric_limits<int32_t>::max()));
}

LoadArguments arguments_of(py::handle path, const py::dict& arguments) {
  LoadArguments read{.path = path_of(path, "path"), .progress = py::none()};
  read.recipes = {text_of(arguments["recipe"], "recipe")};
  for (std::string& name : texts_of(arguments["recipes"], "recipes")) read.recipes.push_back(std::move(name));
  read.formats = texts_of(arguments["formats"], "formats");
  if (!arguments["cache"].is_none()) read.cache = text_of(arguments["cache"], "cache");
  if (!arguments["draft_model"].is_none())
    read.draft_model = path_of(arguments["draft_model"], "draft_model");
  read.engine.threads = small_of(arguments["threads"], "threads");
  read.engine.max_batch = small_of(arguments["max_batch"], "max_batch");
  read.engine.capacity = whole_of(arguments["capacity"], "capacity", 0);
  read.engine.cache_bytes = whole_of(arguments["cache_bytes"], "cache_bytes", 0);
  read.engine.prompt_cache = truth_of(arguments["prompt_cache"], "prompt_cache");
  if (!arguments["cache_dir"].is_none()) read.engine.cache_dir = path_of(arguments["cache_dir"], "cache_dir");
  read.progress = arguments["progress"];
  if (!read.progress.is_none() && PyCallable_Check(read.progress.ptr()) == 0) {
    throw py::type_error(std::string("progress: a function is expected, not ") +
                         Py_TYPE(read.progress.ptr())->tp_name);
  }
  return read;
}

/// The path of the model that recipes draft with, or nothing if they draft with none.
std::optional<std::filesystem::path> draft_model_of(const std::vector<Recipe>& recipes,
                                                    const std::filesystem::path& given) {
  const Recipe* drafting = nullptr;
  std::filesystem::path path = given;
  for (const Recipe& recipe : recipes) {
    for (const DraftLevel& level : recipe.levels) {
      if (level.kind != DraftLevel::Kind::kModel) continue;
      if (path.empty()) path = level.model;
      // A planned recipe goes without, if need be.
      if (!recipe.planned || !path.empty()) drafting = &recipe;
    }
  }
  if (drafting == nullptr && !given.empty()) {
    refuse_use("the recipe " + recipes.front().name +
               " drafts with no other model: leave out draft_model, or name a recipe that does");
  }
  if (drafting == nullptr) return std::nullopt;
  if (path.empty()) {
    refuse_use("the recipe " + drafting->name + " drafts with another model: name one as draft_model");
  }
  return path;
}

}  // namespace

std::shared_ptr<LoadedModel> load(py::handle path, const py::dict& arguments) {
  const LoadArguments given = arguments_of(path, arguments);
  std::vector<Recipe> recipes;
  for (const std::string& name : given.recipes) {
    recipes.push_back(load_recipe(name));
    if (!given.cache.empty()) recipes.back().cache = parse_cache(given.cache, "cache");
  }
  ModelOptions options;
  options.recipes = recipes;
  options.formats = given.formats;
  options.threads = given.engine.threads;
  options.progress = [&given, check = SignalCheck()](double fraction) mutable {
    check();
    if (given.progress.is_none()) return;
    const py::gil_scoped_acquire locked;
    given.progress(fraction);
  };
  const std::optional<std::filesystem::path> drafts = draft_model_of(recipes, given.draft_model);
  const Unlocked released;
  const auto stay_interruptible = [check = SignalCheck()](double) mutable { check(); };
  Model model = Model::load(given.path, options);
  auto engine = std::make_unique<Engine>(model, given.engine);
  std::optional<Model> draft_model;
  if (drafts) {
    ModelOptions draft_options = options;
    draft_options.drafts = true;
    draft_options.formats.clear();
    draft_options.progress = stay_interruptible;
    draft_model = Model::load(*drafts, draft_options);
    engine->set_draft_model(*draft_model);
  }
  for (const Recipe& recipe : recipes) engine->prepare(recipe, stay_interruptible);
  return std::make_shared<LoadedModel>(std::move(model), std::move(draft_model), std::move(engine),
                                       std::move(recipes), given.engine.threads);
}

}  // namespace verbatim::python
