#pragma once

#include <memory>
#include <vector>

#include "serve/answer.h"
#include "serve/openai/completion_request.h"

namespace verbatim::serve {

/// A prompt as it is given to the engine, with what `echo` wants to know of it.
struct CompletionPrompt {
  std::vector<int32_t> tokens;
  std::string text;                 ///< with `echo`
  std::vector<ScoredToken> scored;  ///< with `echo` and `logprobs`: the tokens that the request gave
  bool first_known = false;         ///< whether the first of `scored` was scored too
};

/// What a writer of a completion's answer knows of its request.
struct CompletionAnswer {
  std::shared_ptr<Call> call;
  std::shared_ptr<const CompletionRequest> request;
  std::shared_ptr<LoadedModel> model;
  Recipe recipe;
  GenerateOptions options;
  std::vector<CompletionPrompt> prompts;
};

/// The writer of a completion's answer: of a whole one or of a stream, as the request wants it. Choices are
/// in the order of their prompts.
std::unique_ptr<ReplyWriter> completion_writer(CompletionAnswer answer);

}  // namespace verbatim::serve
