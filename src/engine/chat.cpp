#include "verbatim/chat.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/model_access.h"
#include "text/chat_format.h"
#include "verbatim/text.h"

namespace verbatim {

ChatFormat detect_chat_format(const Model& model) {
  return detect_chat_format(data_of(model).text());
}

namespace {

/// The texts of tokens that end a reply, in the templates of the models that have them.
constexpr const char* kReplyEnds[] = {"<|im_end|>",      "<|eot_id|>",    "<|eom_id|>",
                                      "<|end|>",         "<end_of_turn>", "<|END_OF_TURN_TOKEN|>",
                                      "<|end_of_text|>", "<|return|>",    "<|call|>"};

/// The end of a reply of a template that the chat writes: those of the known ends that the model has as
/// tokens and the template spells out.
ChatFormat template_format(const Model& model, const ChatTemplate& chat_template) {
  ChatFormat format;
  format.name = "template";
  for (const char* end : kReplyEnds) {
    if (chat_template.source().find(end) == std::string::npos) continue;
    if (model.find_token(end)) format.stop_tokens.emplace_back(end);
  }
  return format;
}

const char* role_name(ChatMessage::Role role) {
  switch (role) {
    case ChatMessage::Role::kSystem:
      return "system";
    case ChatMessage::Role::kUser:
      return "user";
    default:
      return "assistant";
  }
}

/// The parts of a prompt behind its first bytes.
std::vector<PromptPart> without_beginning(const std::vector<PromptPart>& parts, size_t bytes) {
  std::vector<PromptPart> rest;
  for (const PromptPart& part : parts) {
    const size_t gone = std::min(bytes, part.text.size());
    bytes -= gone;
    if (gone < part.text.size()) rest.push_back({part.text.substr(gone), part.from_template});
  }
  return rest;
}

}  // namespace

Chat::Chat(const Model& model, std::string system) : model_(model), system_(std::move(system)) {
  ChatTemplate found = ChatTemplate::of(model);
  if (found.own()) {
    format_ = template_format(model, found);
    template_ = std::move(found);
  } else {
    format_ = detect_chat_format(model);
  }
  require_utf8(system_, "the system text");
  clear();
}

Chat::Chat(const Model& model, ChatTemplate chat_template, std::string system)
    : model_(model),
      format_(template_format(model, chat_template)),
      template_(std::move(chat_template)),
      system_(std::move(system)) {
  require_utf8(system_, "the system text");
  clear();
}

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
  rendered_.clear();
}

std::vector<int32_t> Chat::templated_tokens(std::string_view text, std::string& rendered) const {
  nlohmann::json variables = {{"messages", nlohmann::json::array()}, {"add_generation_prompt", true}};
  for (const ChatMessage& message : messages_) {
    variables["messages"].push_back({{"role", role_name(message.role)}, {"content", message.text}});
  }
  variables["messages"].push_back({{"role", "user"}, {"content", text}});
  // A reply may hold bytes that are no UTF-8: a token may be a part of a character.
  const std::string json = variables.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::vector<PromptPart> parts = template_->render(json, &model_);
  rendered.clear();
  for (const PromptPart& part : parts) rendered += part.text;
  if (tokens_.empty() || !rendered.starts_with(rendered_)) return encode(model_, parts);
  std::vector<int32_t> tokens = tokens_;
  const std::vector<int32_t> rest = encode(model_, without_beginning(parts, rendered_.size()), false);
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  return tokens;
}

void Chat::add_user(std::string_view text) {
  if (waiting_) fail(ErrorKind::kUsage, "the last message of the chat has no reply yet: add one first");
  require_utf8(text, "the message");
  const bool first = turns_ == 0;
  std::vector<int32_t> tokens;
  std::string rendered;
  if (template_) {
    tokens = templated_tokens(text, rendered);
  } else {
    tokens = tokens_;
    std::vector<PromptPart> parts = render_user_turn(format_, system_, text, first);
    parts.insert(parts.begin(), {carried_, false});
    const std::vector<int32_t> turn = verbatim::encode(model_, parts, first);
    tokens.insert(tokens.end(), turn.begin(), turn.end());
  }
  const auto context = static_cast<size_t>(model_.context());
  if (tokens.size() >= context && first) {
    bad_input("the message takes {} tokens, which leaves no room in a context of {}: shorten it",
              tokens.size(), context);
  }
  if (tokens.size() >= context) {
    const size_t turn = tokens.size() - std::min(tokens.size(), tokens_.size());
    bad_input("the context is full ({} of {} tokens, and the message takes {}): begin a new conversation",
              tokens_.size(), context, turn);
  }
  tokens_ = std::move(tokens);
  rendered_ = std::move(rendered);
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
  rendered_ += result.text.substr(0, result.text.size() - carried_.size());
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
  rendered_ += text;
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
