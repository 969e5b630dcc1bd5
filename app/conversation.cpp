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
      session_(model, 0, threads) {
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

GenerateResult Conversation::reply(std::string_view user, const Session::OnText& on_text) {
  require_utf8(user, "the message");
  const bool first = turns_ == 0;
  const std::string text = carried_ + render_user_turn(format_, system_, user, first);
  const std::vector<int32_t> tokens = model_.encode(text, first);
  require_room(tokens.size());
  const int64_t before = length();
  try {
    GenerateResult result = session_.generate(tokens, generate_, recipe_, on_text);
    forget_the_end(result);
    ++turns_;
    return result;
  } catch (...) {
    session_.truncate(before);
    throw;
  }
}

void Conversation::reset() {
  session_.truncate(0);
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

void Conversation::forget_the_end(const GenerateResult& result) {
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
  session_.truncate(length() - static_cast<int64_t>(result.tokens.size() - kept));
}

}  // namespace verbatim::app
