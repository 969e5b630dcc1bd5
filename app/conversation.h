#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/verbatim.h"

namespace verbatim::app {

/// A chat with the engine that answers. The engine remembers what was said, so a turn costs no more than its
/// own tokens.
class Conversation {
 public:
  /// `generate` and `recipe` apply to every reply; what ends a reply in the chat's format is added.
  Conversation(const Model& model, Chat chat, GenerateOptions generate, Recipe recipe, int32_t threads);

  /// Takes the person's turn in and generates the reply. Throws Error(kBadInput), with the conversation as it
  /// was, when the turn is not UTF-8 or does not fit.
  GenerateResult reply(std::string_view user, const std::function<void(std::string_view)>& on_text);

  /// Begins anew.
  void reset() { chat_.clear(); }

  /// Gives the model that the recipe drafts with.
  void set_draft_model(const Model& model) { engine_->set_draft_model(model); }
  /// Gets what the recipe needs before the first reply, once there is a draft model if there will be one.
  void prepare(const std::function<void(double)>& progress) { engine_->prepare(recipe_, progress); }

  int64_t turns() const { return chat_.turns(); }
  /// Tokens in the history.
  int64_t length() const { return std::ssize(chat_.tokens()); }
  int64_t context() const { return context_; }

 private:
  Chat chat_;
  GenerateOptions generate_;
  Recipe recipe_;
  std::unique_ptr<Engine> engine_;
  int64_t context_;
};

}  // namespace verbatim::app
