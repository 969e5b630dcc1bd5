#pragma once

#include <string_view>

#include "serve/extension.h"
#include "serve/fields.h"
#include "serve/openai/prompts.h"

namespace verbatim::serve {

/// A request of /v1/completions, as far as it can be read without a model.
struct CompletionRequest {
  /// Throws HttpError(400).
  explicit CompletionRequest(std::string_view text);
  CompletionRequest(const CompletionRequest&) = delete;  // `fields` is about `body`
  CompletionRequest& operator=(const CompletionRequest&) = delete;

  Json body;
  Fields fields;
  std::string model;
  std::vector<Prompt> prompts;
  std::optional<std::string> suffix;
  Extension extension;
  int64_t choices = 1;  ///< for each prompt
  int64_t max_tokens = 16;
  std::optional<int32_t> top_logprobs;
  bool echo = false;
  bool stream = false;
  bool include_usage = false;
};

}  // namespace verbatim::serve
