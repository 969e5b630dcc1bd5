#pragma once

#include <string>
#include <string_view>

#include "serve/conversation.h"
#include "serve/extension.h"
#include "serve/fields.h"

namespace verbatim::serve {

/// A request of /v1/chat/completions, as far as it can be read without a model.
struct ChatRequest {
  /// Throws HttpError(400).
  explicit ChatRequest(std::string_view text);
  ChatRequest(const ChatRequest&) = delete;  // `fields` is about `body`
  ChatRequest& operator=(const ChatRequest&) = delete;

  Json body;
  Fields fields;
  std::string model;
  Question question;
  Extension extension;
  int64_t choices = 1;
  std::optional<int64_t> max_tokens;
  std::optional<int32_t> top_logprobs;
  bool stream = false;
  bool include_usage = false;
};

}  // namespace verbatim::serve
