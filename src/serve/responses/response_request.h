#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/conversation.h"
#include "serve/extension.h"
#include "serve/fields.h"
#include "serve/responses/response_store.h"
#include "serve/responses/server_tools.h"

namespace verbatim::serve {

/// A request of POST /v1/responses, as far as it can be read without a model.
struct ResponseRequest {
  /// Reads the request, and from the store what it continues. Throws HttpError(400), and HttpError(404) if
  /// there is no response to continue.
  ResponseRequest(std::string_view text, const ResponseStore& store);
  ResponseRequest(const ResponseRequest&) = delete;  // `fields` is about `body`
  ResponseRequest& operator=(const ResponseRequest&) = delete;

  Json body;
  Fields fields;
  std::string model;
  Question question;                 ///< what the model is asked, instructions and earlier messages included
  std::vector<Message> messages;     ///< the conversation without the instructions
  std::vector<ServerTools> servers;  ///< of tools, whose calls are made here
  Extension extension;
  std::optional<int64_t> max_tokens;
  std::optional<int32_t> top_logprobs;
  bool stream = false;
  bool store = true;
};

/// An error about a field of chat completions as an error about the field's name here: tools[1].parameters
/// for tools[1].function.parameters.
HttpError with_response_names(const HttpError& error);

}  // namespace verbatim::serve
