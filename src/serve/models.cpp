#include "serve/models.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <thread>

namespace verbatim::serve {

namespace {

int64_t bytes_of_machine() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? pages * sysconf(_SC_PAGESIZE) : std::numeric_limits<int64_t>::max();
}

double gigabytes(int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

/// The memory that a model will take, before it is loaded, where all models may take `most`: its weights, and
/// the room for keys and values, which is at most half of what the weights leave.
int64_t expected_bytes(const ModelReport& report, const EngineOptions& engine, int64_t most) {
  const int64_t capacity =
      engine.capacity > 0 ? std::min<int64_t>(engine.capacity, report.context) : report.context;
  const int64_t weights = report.memory.full + report.memory.mxfp4;
  const int64_t cache = engine.cache_bytes > 0
                            ? engine.cache_bytes
                            : std::min(report.memory.kv_per_token * capacity * engine.max_batch,
                                       std::max<int64_t>(0, most - weights) / 2);
  return weights + cache;
}

}  // namespace

LoadedModel::LoadedModel(std::string name_, Model model_, const EngineOptions& options)
    : name(std::move(name_)), model(std::move(model_)), engine(model, options) {
  capacity_ = options.capacity > 0 ? std::min<int64_t>(options.capacity, model.context()) : model.context();
  try {
    template_ = ChatTemplate::of(model);
    tool_style = serve::tool_style(*template_);
  } catch (const Error& error) {
    template_error_ = error.what();
  }
}

Recipe LoadedModel::recipe_for(const Extension& extension) const {
  auto found = recipes.begin();
  if (!extension.recipe.empty()) {
    found = std::find_if(recipes.begin(), recipes.end(),
                         [&](const Recipe& each) { return each.name == extension.recipe; });
  }
  if (found == recipes.end()) {
    std::string names;
    for (const Recipe& each : recipes) names += (names.empty() ? "" : ", ") + each.name;
    throw HttpError(400,
                    fmt::format("verbatim.recipe: this server offers no recipe {}, but these: {}",
                                shown(extension.recipe, 100), names),
                    "verbatim.recipe", "recipe_not_found");
  }
  Recipe recipe = *found;
  if (!extension.speculation && !recipe.plain()) {
    recipe.name = "plain";
    recipe.levels.clear();
    recipe.acceptance = Recipe::Acceptance::kExact;
    recipe.rollback = 0.0f;
    recipe.planned = false;
  }
  return recipe;
}

const ChatTemplate& LoadedModel::chat_template() const {
  if (!template_) {
    throw HttpError(400, fmt::format("the model {} cannot chat: {}", name, template_error_), "model");
  }
  return *template_;
}

Models::Models(const ServerOptions& options, prometheus::Registry& registry, Workers& workers, Log log,
               const std::function<void(double)>& progress)
    : options_(options),
      workers_(workers),
      log_(std::move(log)),
      most_bytes_(options.model_bytes > 0 ? options.model_bytes : bytes_of_machine()) {
  if (options.models.empty()) throw Error(ErrorKind::kUsage, "the server has no model: give it one");
  recipes_.push_back(load_recipe(options.recipe));
  std::vector<std::string> more = options.more_recipes;
  // Plain decoding beside a planner has weights loaded that verify many sequences at once faster than weights
  // that hold drafts too.
  if (recipes_.front().planned) more.emplace_back("plain");
  for (const std::string& each : more) {
    Recipe recipe = load_recipe(each);
    const auto same = [&](const Recipe& other) { return other.name == recipe.name; };
    if (std::none_of(recipes_.begin(), recipes_.end(), same)) recipes_.push_back(std::move(recipe));
  }
  for (const ServedModel& each : options.models) {
    const auto same = [&](const auto& slot) { return slot->served.name == each.name; };
    if (each.name.empty() || std::any_of(slots_.begin(), slots_.end(), same)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the server has two models of the name \"{}\", or it is empty", each.name));
    }
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->served = each;
    slots_.back()->counts = std::make_shared<ModelCounts>(registry, each.name);
  }
  if (!options.draft_model.empty()) {
    draft_model_ = Model::load(options.draft_model, {.recipes = recipes_, .drafts = true});
  }
  slots_.front()->loaded = load(*slots_.front(), progress);
  loader_ = std::make_unique<Workers>(1);
}

Models::~Models() {
  end();
  loader_.reset();
}

void Models::end() {
  ending_ = true;
  std::vector<std::pair<Ready, Failed>> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& slot : slots_) {
      std::move(slot->waiting.begin(), slot->waiting.end(), std::back_inserter(waiting));
      slot->waiting.clear();
    }
  }
  for (auto& each : waiting) {
    workers_.post([failed = std::move(each.second)] { failed({503, "the server is ending"}); });
  }
}

std::shared_ptr<LoadedModel> Models::load(const Slot& slot, const std::function<void(double)>& progress) {
  ModelOptions options;
  options.recipes = recipes_;
  options.threads = options_.engine.threads;
  options.progress = progress;
  auto loaded = std::make_shared<LoadedModel>(slot.served.name, Model::load(slot.served.path, options),
                                              options_.engine);
  if (draft_model_) loaded->engine.set_draft_model(*draft_model_);
  loaded->recipes = recipes_;
  loaded->counts = slot.counts;
  for (const Recipe& recipe : recipes_) loaded->engine.prepare(recipe);
  loaded->bytes = weight_bytes(loaded->model) + loaded->engine.stats().cache_bytes;
  for (const std::string& warning : loaded->model.warnings()) {
    log_("warning", fmt::format("model {}: {}", slot.served.name, warning));
  }
  return loaded;
}

void Models::use(std::string_view name, const Ready& ready, const Failed& failed) {
  std::shared_ptr<LoadedModel> loaded;
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = *slots_[index_of(name)];
    slot.used = ++clock_;
    loaded = slot.loaded;
    if (loaded == nullptr) {
      if (ending_) throw HttpError(503, "the server is ending");
      if (std::ssize(slot.waiting) >= std::max<int64_t>(1, options_.max_queue)) {
        throw HttpError(429,
                        fmt::format("too many requests wait for the model {} to load", slot.served.name));
      }
      slot.waiting.emplace_back(ready, failed);
      if (std::exchange(slot.loading, true)) return;
      loader_->post([this, &slot] { load_now(slot); });
      return;
    }
  }
  ready(std::move(loaded));
}

/// Loads a model on the loader's thread and tells those who wait for it.
void Models::load_now(Slot& slot) {
  std::shared_ptr<LoadedModel> loaded;
  std::optional<HttpError> error;
  const std::string& name = slot.served.name;
  const auto attempt = [&] {
    const auto go_on = [this](double) {
      if (ending_) throw HttpError(503, "the server is ending");
    };
    go_on(0);
    make_room(slot);
    log_("info", fmt::format("loading model {}", name));
    try {
      loaded = load(slot, go_on);
    } catch (const Error& failure) {
      if (failure.kind() != ErrorKind::kMachine || !unload_one()) throw;
      while (unload_one()) {
      }
      loaded = load(slot, go_on);
    }
    log_("info", fmt::format("model {} is loaded", name));
  };
  try {
    attempt();
  } catch (const HttpError& failure) {
    log_("error", fmt::format("model {} could not be loaded: {}", name, failure.what()));
    error = failure;
  } catch (const std::exception& failure) {
    const auto* const own = dynamic_cast<const Error*>(&failure);
    const bool memory = own != nullptr && own->kind() == ErrorKind::kMachine;
    log_("error", fmt::format("model {} could not be loaded: {}", name, failure.what()));
    error.emplace(memory ? 503 : 500,
                  fmt::format("the model {} could not be loaded; the server's log says why", name), "model",
                  "model_not_loaded");
  }
  std::vector<std::pair<Ready, Failed>> waiting;
  {
    const std::lock_guard lock(mutex_);
    slot.loading = false;
    slot.loaded = loaded;
    waiting.swap(slot.waiting);
  }
  for (auto& [ready, failed] : waiting) {
    workers_.post([ready = std::move(ready), failed = std::move(failed), loaded, error] {
      if (loaded != nullptr) {
        ready(loaded);
      } else {
        failed(*error);
      }
    });
  }
}

/// Unloads what is idle until there is room for a model; waits for another to become idle if none is. A model
/// that fits no more than just about is loaded once no other is.
void Models::make_room(const Slot& slot_to_load) {
  const ModelReport report = inspect_model(slot_to_load.served.path);
  if (report.memory.full > most_bytes_) {
    throw HttpError(
        503,
        fmt::format("the model {} takes {:.3g} GB, and this server's models may take {:.3g} GB",
                    slot_to_load.served.name, gigabytes(report.memory.full), gigabytes(most_bytes_)),
        "model", "model_not_loaded");
  }
  const int64_t bytes = std::min(most_bytes_, expected_bytes(report, options_.engine, most_bytes_));
  const auto give_up = std::chrono::steady_clock::now() + options_.request_timeout;
  while (true) {
    int64_t taken = 0;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& slot : slots_) taken += slot->loaded == nullptr ? 0 : slot->loaded->bytes;
    }
    if (taken + bytes <= most_bytes_) return;
    if (unload_one()) continue;
    if (!ending_ && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    throw HttpError(503, "memory is short for another model while the loaded ones are in use", "model",
                    "model_not_loaded");
  }
}

/// Unloads the least recently used of the models that nobody uses; false if there is none.
bool Models::unload_one() {
  std::shared_ptr<LoadedModel> unloaded;
  {
    const std::lock_guard lock(mutex_);
    Slot* oldest = nullptr;
    for (const auto& slot : slots_) {
      if (slot->loaded == nullptr || slot->loaded.use_count() > 1) continue;
      if (oldest == nullptr || slot->used < oldest->used) oldest = slot.get();
    }
    if (oldest == nullptr) return false;
    unloaded = std::move(oldest->loaded);
    oldest->loaded = nullptr;
  }
  log_("info", fmt::format("unloading model {}", unloaded->name));
  return true;
}

std::vector<Models::Entry> Models::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  entries.reserve(slots_.size());
  for (const auto& slot : slots_) entries.push_back({slot->served.name, slot->loaded, slot->counts});
  return entries;
}

size_t Models::index_of(std::string_view name) const {
  if (name.empty()) return 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]->served.name == name) return i;
  }
  if (options_.any_model_name) return 0;
  throw HttpError(404,
                  fmt::format("this server has no model {}: GET /v1/models lists them", shown(name, 100)),
                  "model", "model_not_found");
}

}  // namespace verbatim::serve
