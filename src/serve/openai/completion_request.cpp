#include "serve/openai/completion_request.h"

#include "serve/openai/common_fields.h"
#include "serve/openai/endpoints.h"

namespace verbatim::serve {

namespace {

constexpr std::array kCompletionTable = joined(
    kGenerationFields,
    std::array{
        Field{.name = "prompt",
              .type = FieldType::kTextOrList,
              .note =
                  "a text, a list of texts, a list of tokens, or a list of such lists; special tokens that "
                  "are spelled out in a text are meant as such",
              .required = true},
        Field{.name = "suffix",
              .type = FieldType::kText,
              .note = "what follows what is to be filled in, of a model with tokens for that"},
        Field{.name = "max_tokens",
              .type = FieldType::kInteger,
              .note = "the most tokens of an answer; 16 if it is absent",
              .least = 0,
              .most = 1e9},
        Field{.name = "echo", .type = FieldType::kBoolean, .note = "true: an answer begins with its prompt"},
        Field{.name = "logprobs",
              .type = FieldType::kInteger,
              .note =
                  "tells how likely the model held each token, by its own logits at temperature 1, with as "
                  "many of the likeliest beside it; with `echo`, of the prompt too",
              .least = 0,
              .most = 20},
        Field{.name = "best_of",
              .type = FieldType::kInteger,
              .use = FieldUse::kOnly,
              .note = "answers are not ranked",
              .accepted = "1"},
    });

}  // namespace

const FieldTable kCompletionsFields = kCompletionTable;

CompletionRequest::CompletionRequest(std::string_view text)
    : body(parse_body(text)),
      fields(body, kCompletionsFields),
      model(fields.text("model").value_or("")),
      prompts(read_prompts(fields, "prompt")),
      suffix(fields.text("suffix")),
      extension(read_extension(fields, fields.boolean("stream").value_or(false))),
      choices(fields.integer("n").value_or(1)),
      max_tokens(fields.integer("max_tokens").value_or(16)),
      echo(fields.boolean("echo").value_or(false)),
      stream(fields.boolean("stream").value_or(false)),
      include_usage(read_include_usage(fields)) {
  if (fields.has("logprobs")) top_logprobs = static_cast<int32_t>(*fields.integer("logprobs"));
  if (suffix) {
    const auto is_text = [](const Prompt& prompt) { return std::holds_alternative<std::string>(prompt); };
    if (!std::all_of(prompts.begin(), prompts.end(), is_text)) {
      fields.refuse("suffix", "is for prompts that are texts", "invalid_value");
    }
    if (echo) fields.refuse("suffix", "cannot be together with `echo`", "invalid_value");
  }
  read_stop(fields);
}

}  // namespace verbatim::serve
