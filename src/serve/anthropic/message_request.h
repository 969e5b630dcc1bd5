#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/conversation.h"
#include "serve/extension.h"
#include "serve/fields.h"
#include "serve/models.h"

namespace verbatim::serve {

/// A request of /v1/messages or /v1/messages/count_tokens, as far as it can be read without a model.
struct MessageRequest {
  /// `table` is that of the endpoint. Throws HttpError(400).
  MessageRequest(std::string_view text, FieldTable table);
  MessageRequest(const MessageRequest&) = delete;  // `fields` is about `body`
  MessageRequest& operator=(const MessageRequest&) = delete;

  /// The tokens of the prompt, with the beginning of the answer if the request gives one. Throws
  /// HttpError(400) for what the model's template refuses.
  std::vector<int32_t> prompt(const LoadedModel& model) const;

  Json body;
  Fields fields;
  std::string model;
  Question question;
  std::string begun;  ///< the beginning of the answer
  Extension extension;
  int64_t max_tokens = 0;
  std::vector<std::string> stop;
  bool stream = false;
};

/// The path of a field of chat completions that a message in `error` is about, as Anthropic's interface has
/// it: tools[1].input_schema for tools[1].function.parameters.
HttpError with_anthropic_names(const HttpError& error);

}  // namespace verbatim::serve
