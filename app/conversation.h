#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_format.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

/// Turns of a person and replies of a model. The engine remembers what was said, so a turn costs no more than
/// its own tokens.
class Conversation {
 public:
  /// `generate` and `recipe` apply to every reply; what ends a reply in this format is added.
  Conversation(const Model& model, const ChatFormat& format, std::string system, GenerateOptions generate,
               Recipe recipe, int32_t threads);

  /// Takes the person's turn in and generates the reply. Throws Error(kBadInput), with the conversation as it
  /// was, when the turn is not UTF-8 or does not fit.
  GenerateResult reply(std::string_view user, const std::function<void(std::string_view)>& on_text);

  /// Begins anew.
  void reset();

  /// Gives the model that the recipe drafts with.
  void set_draft_model(const Model& model) { engine_->set_draft_model(model); }
  /// Gets what the recipe needs before the first reply, once there is a draft model if there will be one.
  void prepare(const std::function<void(double)>& progress) { engine_->prepare(recipe_, progress); }

  int64_t turns() const { return turns_; }
  /// Tokens in the history.
  int64_t length() const { return std::ssize(tokens_); }
  int64_t context() const { return model_.context(); }

 private:
  void require_room(size_t turn_tokens) const;
  void remember(const GenerateResult& result);

  Model model_;
  ChatFormat format_;
  std::string system_;
  GenerateOptions generate_;
  Recipe recipe_;
  std::unique_ptr<Engine> engine_;
  std::vector<int32_t> tokens_;  // the history
  int64_t turns_ = 0;
  /// Text of the last reply that shares a token with the stop string behind it. That token is not in the
  /// history, so the text goes before the next turn.
  std::string carried_;
};

}  // namespace verbatim::app
