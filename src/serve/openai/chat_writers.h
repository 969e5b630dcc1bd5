#pragma once

#include <memory>
#include <vector>

#include "serve/answer.h"
#include "serve/openai/chat_request.h"

namespace verbatim::serve {

/// What a writer of a chat's answer knows of its request.
struct ChatAnswer {
  std::shared_ptr<Call> call;
  std::shared_ptr<const ChatRequest> request;
  std::shared_ptr<LoadedModel> model;
  Recipe recipe;
  GenerateOptions options;
  int64_t prompt_tokens = 0;
};

/// The writer of a chat's answer: of a whole one or of a stream, as the request wants it.
std::unique_ptr<ReplyWriter> chat_writer(ChatAnswer answer);

}  // namespace verbatim::serve
