#pragma once

#include <pybind11/pybind11.h>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "answer.h"
#include "options.h"
#include "verbatim/verbatim.h"

namespace verbatim::python {

/// A model with the engine that answers for it, shared by all threads, and the recipe that it was loaded for.
/// All members may be called from several threads, and those that compute want the interpreter's lock
/// released.
class LoadedModel : public std::enable_shared_from_this<LoadedModel> {
 public:
  LoadedModel(Model model, std::optional<Model> draft_model, std::unique_ptr<Engine> engine,
              std::vector<Recipe> recipes, int32_t threads);
  ~LoadedModel();

  /// The model. Throws Error(kUsage) once it is closed.
  Model model() const;
  /// The other model that recipes draft with, if there is one.
  std::optional<Model> draft_model() const;
  /// The engine. Throws Error(kUsage) once the model is closed, and in a process that was forked after it was
  /// loaded, which has none of the engine's threads.
  std::shared_ptr<Engine> engine() const;
  /// The recipe of a name, or the first one that the model was loaded for if there is no name.
  Recipe recipe(const std::string& name) const;
  int32_t threads() const { return threads_; }

  /// Submits a prompt.
  std::shared_ptr<Answer> ask(std::vector<int32_t> prompt, ChosenOptions options, Answer::Wakes wakes,
                              std::shared_ptr<Waker> waker);

  /// Cancels what is being answered and frees the memory. May be called again.
  void close();
  bool closed() const;

 private:
  mutable std::mutex mutex_;
  std::optional<Model> model_;
  std::optional<Model> draft_model_;
  std::shared_ptr<Engine> engine_;
  std::vector<Recipe> recipes_;
  int32_t threads_;
  pid_t process_;  ///< the process that loaded the model
};

/// Makes the class of models, and closes those that are left when the interpreter ends.
void bind_models(pybind11::module_& module);

/// Adds what evaluates a given text to the class of models: scores and logits.
void bind_evaluation(pybind11::class_<LoadedModel, std::shared_ptr<LoadedModel>>& models);

/// Makes the class of conversations.
void bind_conversations(pybind11::module_& module);

}  // namespace verbatim::python
