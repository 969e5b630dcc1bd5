#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/conversation.h"
#include "serve/errors.h"
#include "serve/extension.h"
#include "serve/model_counts.h"
#include "serve/workers.h"
#include "verbatim/serve.h"
#include "verbatim/verbatim.h"

namespace verbatim::serve {

/// A model that is loaded, with the engine that answers its requests. All members but `counts` are constant
/// once it is loaded.
struct LoadedModel {
  LoadedModel(std::string name, Model model, const EngineOptions& options);

  /// The recipe that a request asks for, or the server's; with its levels taken away if the request wants no
  /// speculation, which gives the same bytes. Throws HttpError for a name that is not offered.
  Recipe recipe_for(const Extension& extension) const;
  /// The most tokens of a sequence.
  int64_t capacity() const { return capacity_; }
  /// The chat template. Throws HttpError if the model's own cannot be used.
  const ChatTemplate& chat_template() const;

  std::string name;
  Model model;
  ToolStyle tool_style = ToolStyle::kGeneric;
  std::vector<Recipe> recipes;  ///< the first is for requests that name none
  std::shared_ptr<ModelCounts> counts;
  int64_t bytes = 0;  ///< of memory, about
  Engine engine;

 private:
  friend class Models;
  int64_t capacity_ = 0;
  std::optional<ChatTemplate> template_;
  std::string template_error_;
};

/// The models of a server by their names. The first is loaded at once, the others on a thread of their own
/// when they are first asked for; what was not used for the longest time is unloaded when memory is short.
class Models {
 public:
  using Log = std::function<void(std::string_view level, const std::string& line)>;
  using Ready = std::function<void(const std::shared_ptr<LoadedModel>&)>;
  using Failed = std::function<void(const HttpError&)>;

  /// Loads the first model. Throws what Model::load() throws, and Error(kUsage) for names that are empty or
  /// the same. What waits for a model that is loaded later goes on on one of the workers. The registry of
  /// metrics and the workers must outlive the models.
  Models(const ServerOptions& options, prometheus::Registry& registry, Workers& workers, Log log,
         const std::function<void(double)>& progress);
  /// Ends the loading that is going on.
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  /// Calls `ready` on this thread if the model is loaded, and else on a worker when it is; or `failed` there,
  /// when it could not be loaded. An empty name is the first model's. Who holds the pointer uses the model:
  /// it is not unloaded. Throws HttpError(404) if there is no such model, and HttpError(429) if too many wait
  /// for it.
  void use(std::string_view name, const Ready& ready, const Failed& failed);

  /// Loads nothing more: who waits for a model fails with 503, and a model that is being loaded is given up.
  void end();

  /// What is known of a model without loading it.
  struct Entry {
    std::string name;
    std::shared_ptr<LoadedModel> loaded;  ///< null if it is not
    std::shared_ptr<ModelCounts> counts;
  };
  /// All models in the order in which the server was given them. They are in use while the list lives.
  std::vector<Entry> list() const;
  /// The place in the list of the model that a name stands for: of its own, or the first, where any name is
  /// good. Throws HttpError(404) if there is none.
  size_t index_of(std::string_view name) const;

 private:
  struct Slot {
    ServedModel served;
    std::shared_ptr<ModelCounts> counts;
    std::shared_ptr<LoadedModel> loaded;
    bool loading = false;
    int64_t used = 0;  // the clock's value at the last use
    std::vector<std::pair<Ready, Failed>> waiting;
  };

  std::shared_ptr<LoadedModel> load(const Slot& slot, const std::function<void(double)>& progress);
  void load_now(Slot& slot);
  void make_room(const Slot& slot);
  bool unload_one();

  ServerOptions options_;
  Workers& workers_;
  Log log_;
  std::vector<Recipe> recipes_;
  std::optional<Model> draft_model_;
  int64_t most_bytes_;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;  // guards what follows, but for what is constant in a slot
  int64_t clock_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<Workers> loader_;
};

}  // namespace verbatim::serve
