#include "conversation.h"

#include "base/error.h"
#include "engine/model_data.h"

namespace verbatim::app {

Conversation::Conversation(const Model& model, const ChatFormat& format, std::string system,
                           GenerateOptions generate, Recipe recipe, int32_t threads)
    : model_(model),
      format_(format),
      system_(std::move(system)),
      generate_(std::move(generate)),
      recipe_(std::move(recipe)),
      engine_(std::make_unique<Engine>(model, EngineOptions{.max_batch = 1, .threads = threads})) {
  for (const std::string& stop : stop_strings(format_)) generate_.stop.push_back(stop);
  for (const std::string& name : stop_tokens(format_)) {
    // A model that lacks the token spells it out.
    if (const auto token = model_.data().text().find(name)) {
      generate_.stop_tokens.push_back(*token);
    } else {
      generate_.stop.push_back(name);
    }
  }
}

GenerateResult Conversation::reply(std::string_view user,
                                   const std::function<void(std::string_view)>& on_text) {
  require_utf8(user, "the message");
  const bool first = turns_ == 0;
  const std::string text = carried_ + render_user_turn(format_, system_, user, first);
  const std::vector<int32_t> turn = model_.encode(text, first);
  require_room(turn.size());
  std::vector<int32_t> prompt = tokens_;
  prompt.insert(prompt.end(), turn.begin(), turn.end());
  TokenStream stream = engine_->submit({prompt, generate_, recipe_});
  try {
    while (const auto piece = stream.next()) on_text(piece->text);
  } catch (...) {
    stream.cancel();
    throw;
  }
  GenerateResult result = stream.wait();
  tokens_ = std::move(prompt);
  remember(result);
  ++turns_;
  return result;
}

void Conversation::reset() {
  tokens_.clear();
  turns_ = 0;
  carried_.clear();
}

void Conversation::require_room(size_t turn_tokens) const {
  if (length() + static_cast<int64_t>(turn_tokens) < context()) return;
  if (turns_ == 0) {
    bad_input("the message takes {} tokens, which leaves no room in a context of {}: shorten it", turn_tokens,
              context());
  }
  bad_input("the context is full ({} of {} tokens, and the message takes {}): /reset begins anew", length(),
            context(), turn_tokens);
}

/// Takes a reply into the history, but for what ends it.
void Conversation::remember(const GenerateResult& result) {
  carried_.clear();
  size_t kept = result.tokens.size();
  if (result.stats.finish == FinishReason::kEndOfSequence) --kept;
  if (result.stats.finish == FinishReason::kStopString) {
    size_t bytes = 0;
    kept = 0;
    for (const int32_t token : result.tokens) {
      const size_t more = model_.data().text().piece_bytes(token, false).size();
      if (bytes + more > result.text.size()) break;
      bytes += more;
      ++kept;
    }
    carried_ = result.text.substr(bytes);
  }
  tokens_.insert(tokens_.end(), result.tokens.begin(), result.tokens.begin() + static_cast<ptrdiff_t>(kept));
}

}  // namespace verbatim::app
