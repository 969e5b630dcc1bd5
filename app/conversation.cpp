#include "conversation.h"

namespace verbatim::app {

Conversation::Conversation(const Model& model, Chat chat, GenerateOptions generate, Recipe recipe,
                           int32_t threads)
    : chat_(std::move(chat)),
      generate_(std::move(generate)),
      recipe_(std::move(recipe)),
      engine_(std::make_unique<Engine>(model, EngineOptions{.max_batch = 1, .threads = threads})),
      context_(model.context()) {
  chat_.add_stops(generate_);
}

GenerateResult Conversation::reply(std::string_view user,
                                   const std::function<void(std::string_view)>& on_text) {
  Chat next = chat_;
  next.add_user(user);
  TokenStream stream = engine_->submit({next.tokens(), generate_, recipe_});
  try {
    while (const auto piece = stream.next()) on_text(piece->text);
  } catch (...) {
    stream.cancel();
    throw;
  }
  GenerateResult result = stream.wait();
  next.add_reply(result);
  chat_ = std::move(next);
  return result;
}

}  // namespace verbatim::app
