#pragma once

#include <memory>

#include "serve/answer.h"
#include "serve/anthropic/message_request.h"

namespace verbatim::serve {

/// What the writer of a message knows of its request.
struct MessageAnswer {
  std::shared_ptr<Call> call;
  std::shared_ptr<const MessageRequest> request;
  std::shared_ptr<LoadedModel> model;
  Recipe recipe;
  GenerateOptions options;
  int64_t prompt_tokens = 0;
};

/// The writer of an answer of /v1/messages: of a whole one or of a stream, as the request wants it.
std::unique_ptr<ReplyWriter> message_writer(MessageAnswer answer);

}  // namespace verbatim::serve
