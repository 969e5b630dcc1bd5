#include "agent/model/conversation.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/json.h"
#include "verbatim/chat.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

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

Conversation::Conversation(const Model& model) : model_(model), template_(ChatTemplate::of(model)) {}

const std::vector<int32_t>& Conversation::tokens(const std::vector<ModelMessage>& messages, int64_t most) {
  if (!tokens_.empty() && messages == messages_) return tokens_;
  size_t bytes = 0;
  for (const ModelMessage& message : messages) bytes += message.content.size();
  const auto limit = static_cast<size_t>(std::max<int64_t>(most, 0));
  // Every message takes a token at least, and no token is longer than the longest.
  if (messages.size() >= limit || (bytes >= limit && bytes >= limit * longest_token())) {
    throw PromptTooLong(
        fmt::format("the conversation has {} messages with {} bytes, more than {} tokens can hold",
                    messages.size(), bytes, limit));
  }
  Json variables = {{"messages", Json::array()}, {"add_generation_prompt", true}};
  for (const ModelMessage& message : messages) {
    require_utf8(message.content, "the message");
    variables["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  const std::vector<PromptPart> parts = template_.render(dump(variables), &model_);
  std::string rendered;
  for (const PromptPart& part : parts) rendered += part.text;
  if (!tokens_.empty() && rendered.starts_with(rendered_)) {
    const std::vector<int32_t> rest = encode(model_, without_beginning(parts, rendered_.size()), false);
    tokens_.insert(tokens_.end(), rest.begin(), rest.end());
  } else {
    tokens_ = encode(model_, parts);
  }
  rendered_ = std::move(rendered);
  messages_ = messages;
  return tokens_;
}

void Conversation::add_stops(GenerateOptions& options) const {
  Chat(model_).add_stops(options);
}

size_t Conversation::longest_token() {
  if (longest_token_ == 0) {
    longest_token_ = 1;
    for (int32_t token = 0; token < model_.vocab_size(); ++token)
      longest_token_ = std::max(longest_token_, model_.token_text(token).size());
  }
  return longest_token_;
}

}  // namespace verbatim::agent
