#include "verbatim/chat.h"

#include "base/error.h"
#include "engine/model_access.h"
#include "text/chat_format.h"
#include "verbatim/text.h"

namespace verbatim {

ChatFormat detect_chat_format(const Model& model) {
  return detect_chat_format(data_of(model).text());
}

Chat::Chat(const Model& model, std::string system)
    : Chat(model, detect_chat_format(model), std::move(system)) {}

Chat::Chat(const Model& model, ChatFormat format, std::string system)
    : model_(model), format_(std::move(format)), system_(std::move(system)) {
  require_utf8(system_, "the system text");
  clear();
}

void Chat::clear() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({ChatMessage::Role::kSystem, system_});
  tokens_.clear();
  turns_ = 0;
  waiting_ = false;
  carried_.clear();
}

void Chat::add_user(std::string_view text) {
  if (waiting_) fail(ErrorKind::kUsage, "the last message of the chat has no reply yet: add one first");
  require_utf8(text, "the message");
  const bool first = turns_ == 0;
  const std::vector<int32_t> turn =
      model_.encode(carried_ + render_user_turn(format_, system_, text, first), first);
  const size_t length = tokens_.size() + turn.size();
  const auto context = static_cast<size_t>(model_.context());
  if (length >= context && first) {
    bad_input("the message takes {} tokens, which leaves no room in a context of {}: shorten it", turn.size(),
              context);
  }
  if (length >= context) {
    bad_input("the context is full ({} of {} tokens, and the message takes {}): begin a new conversation",
              tokens_.size(), context, turn.size());
  }
  tokens_.insert(tokens_.end(), turn.begin(), turn.end());
  messages_.push_back({ChatMessage::Role::kUser, std::string(text)});
  carried_.clear();
  waiting_ = true;
}

void Chat::require_waiting() const {
  if (!waiting_) fail(ErrorKind::kUsage, "the chat has no message to reply to: add one of the user first");
}

void Chat::add_reply(const GenerateResult& result) {
  require_waiting();
  size_t kept = result.tokens.size();
  if (result.stats.finish == FinishReason::kEndOfSequence && kept > 0) --kept;
  if (result.stats.finish == FinishReason::kStopString) {
    size_t bytes = 0;
    kept = 0;
    for (const int32_t token : result.tokens) {
      const size_t more = model_.token_text(token).size();
      if (bytes + more > result.text.size()) break;
      bytes += more;
      ++kept;
    }
    carried_ = result.text.substr(bytes);
  }
  tokens_.insert(tokens_.end(), result.tokens.begin(), result.tokens.begin() + static_cast<ptrdiff_t>(kept));
  messages_.push_back({ChatMessage::Role::kAssistant, result.text});
  ++turns_;
  waiting_ = false;
}

void Chat::add_reply(std::string_view text) {
  require_waiting();
  require_utf8(text, "the reply");
  const std::vector<int32_t> reply =
      data_of(model_).text().encode(text, {.add_bos = false, .parse_special = false});
  tokens_.insert(tokens_.end(), reply.begin(), reply.end());
  messages_.push_back({ChatMessage::Role::kAssistant, std::string(text)});
  ++turns_;
  waiting_ = false;
}

void Chat::add_stops(GenerateOptions& options) const {
  for (const std::string& stop : format_.stop_strings) options.stop.push_back(stop);
  for (const std::string& name : format_.stop_tokens) {
    // A model that lacks the token spells it out.
    if (const auto token = model_.find_token(name)) {
      options.stop_tokens.push_back(*token);
    } else {
      options.stop.push_back(name);
    }
  }
}

}  // namespace verbatim
