#pragma once

#include <memory>

#include "serve/answer.h"
#include "serve/responses/response_request.h"

namespace verbatim::serve {

/// What the writer of a response knows of its request.
struct ResponseAnswer {
  std::shared_ptr<Call> call;
  std::shared_ptr<const ResponseRequest> request;
  std::shared_ptr<LoadedModel> model;
  Recipe recipe;
  GenerateOptions options;
  int64_t prompt_tokens = 0;
  ResponseStore* store = nullptr;  ///< where the response is kept if the request wants it
};

/// The writer of a response: of a whole one or of a stream, as the request wants it.
std::unique_ptr<ReplyWriter> response_writer(ResponseAnswer answer);

}  // namespace verbatim::serve
