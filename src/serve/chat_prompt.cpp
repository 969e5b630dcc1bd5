#include "serve/chat_prompt.h"

#include "serve/prompt.h"

namespace verbatim::serve {

std::vector<int32_t> prompt_of(const LoadedModel& model, const Question& question) {
  return conversation_tokens(question, model.model, model.chat_template(), model.tool_style);
}

void hold_to(const LoadedModel& model, const Question& question, GenerateOptions& options) {
  try {
    options.structure = reply_structure(question, model.tool_style);
  } catch (const Error& error) {
    const bool format = question.format.kind == ReplyFormat::Kind::kJsonSchema;
    throw HttpError(400, error.what(), format ? "response_format" : "tools", "invalid_schema");
  }
  options.shown_tokens = shown_marks(question, model.model, model.tool_style);
  add_reply_ends(model.model, options);
}

void check_prompt_length(const LoadedModel& model, const ServerOptions& options, int64_t tokens) {
  if (options.max_prompt_tokens > 0 && tokens > options.max_prompt_tokens) {
    throw HttpError(400,
                    fmt::format("the prompt has {} tokens; this server takes {} at most", tokens,
                                options.max_prompt_tokens),
                    {}, "context_length_exceeded");
  }
  if (tokens < model.capacity()) return;
  throw HttpError(
      400,
      fmt::format("the prompt has {} tokens, which leaves no room for an answer in a context of {}", tokens,
                  model.capacity()),
      {}, "context_length_exceeded");
}

}  // namespace verbatim::serve
