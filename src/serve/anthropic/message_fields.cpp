#include <array>

#include "serve/anthropic/endpoints.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {
namespace {

constexpr Field kCacheControl = {.name = "cache_control",
                                 .type = FieldType::kObject,
                                 .use = FieldUse::kHarmless,
                                 .note = "beginnings of prompts are remembered without it"};

// What the prompt is made of, which both endpoints read.
constexpr std::array kPromptTable = {
    Field{.name = "model",
          .type = FieldType::kText,
          .note = "the name of a model that the server has",
          .required = true},
    Field{.name = "messages",
          .type = FieldType::kList,
          .note =
              "the conversation; their fields are below. A last message of the assistant is the beginning "
              "of the answer",
          .required = true},
    Field{.name = "system", .type = FieldType::kTextOrList, .note = "a text, or blocks of text"},
    Field{.name = "tools", .type = FieldType::kList, .note = "tools that the answer may call, 1024 at most"},
    Field{.name = "tool_choice",
          .type = FieldType::kObject,
          .note = "which tools the answer calls; its fields are below"},
    Field{.name = "thinking",
          .type = FieldType::kObject,
          .note = "of the types \"disabled\" and \"adaptive\": answers have no thoughts of their own"},
    Field{.name = "output_config",
          .type = FieldType::kObject,
          .note = "holds the answer to a schema; its fields are below"},
    kCacheControl,
    Field{.name = "context_management",
          .use = FieldUse::kRefused,
          .note = "the server leaves nothing out of a conversation"},
    Field{.name = "mcp_servers", .use = FieldUse::kRefused, .note = "the server calls no other servers"},
    Field{.name = "container", .use = FieldUse::kRefused, .note = "the server runs no tools"},
};

constexpr std::array kMessagesTable = joined(
    kPromptTable,
    std::array{
        Field{.name = "max_tokens",
              .type = FieldType::kInteger,
              .note = "the most tokens of the answer; the context ends it too",
              .least = 1,
              .most = 1e9,
              .required = true},
        Field{.name = "stop_sequences",
              .type = FieldType::kTextOrTexts,
              .note = "up to 16 texts before the first of which the answer ends"},
        Field{.name = "stream",
              .type = FieldType::kBoolean,
              .note = "answers with server-sent events as the text comes"},
        Field{.name = "temperature",
              .type = FieldType::kNumber,
              .note = "divides the logits; 0 takes the likeliest token. 1 if it is absent",
              .least = 0,
              .most = 1},
        Field{.name = "top_p",
              .type = FieldType::kNumber,
              .note =
                  "keeps the likeliest tokens that together reach this probability; 1 (all) if it is absent",
              .least = 0,
              .most = 1},
        Field{.name = "top_k",
              .type = FieldType::kInteger,
              .note = "keeps this many of the likeliest tokens; 0 keeps all",
              .least = 0,
              .most = 1e9},
        Field{.name = "seed",
              .type = FieldType::kInteger,
              .note = "this server's own: the same seed gives the same answer; drawn if it is absent",
              .least = -9e15,
              .most = 9e15},
        Field{.name = "verbatim",
              .type = FieldType::kObject,
              .note = "this server's own; see [the member verbatim](#the-member-verbatim)"},
        Field{.name = "metadata",
              .type = FieldType::kObject,
              .use = FieldUse::kHarmless,
              .note = "a label for whoever runs the server; no answer depends on it"},
        Field{.name = "service_tier",
              .type = FieldType::kText,
              .use = FieldUse::kOnly,
              .note = "all requests are served alike",
              .accepted = "\"auto\" \"standard_only\""},
        Field{.name = "inference_geo",
              .type = FieldType::kText,
              .use = FieldUse::kRefused,
              .note = "the server computes where it stands"},
    });

constexpr Field kMessageTable[] = {
    {.name = "role", .type = FieldType::kText, .note = "\"user\" or \"assistant\"", .required = true},
    {.name = "content",
     .type = FieldType::kTextOrList,
     .note = "a text, or blocks of the types below",
     .required = true},
};

constexpr Field kTextTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"text\"", .required = true},
    {.name = "text",
     .type = FieldType::kText,
     .note = "the block's text; blocks become lines of their own",
     .required = true},
    kCacheControl,
    {.name = "citations",
     .type = FieldType::kAny,
     .use = FieldUse::kOnly,
     .note = "clients send it back as they got it",
     .accepted = "[]"},
};

constexpr Field kToolUseTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"tool_use\"", .required = true},
    {.name = "id", .type = FieldType::kText, .note = "names the call", .required = true},
    {.name = "name", .type = FieldType::kText, .note = "the tool's", .required = true},
    {.name = "input", .type = FieldType::kObject, .note = "the arguments", .required = true},
    {.name = "caller",
     .type = FieldType::kObject,
     .use = FieldUse::kOnly,
     .note = "calls are the model's own",
     .accepted = "{\"type\":\"direct\"}"},
    kCacheControl,
};

constexpr Field kToolResultTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"tool_result\"", .required = true},
    {.name = "tool_use_id", .type = FieldType::kText, .note = "the call that it answers", .required = true},
    {.name = "content", .type = FieldType::kTextOrList, .note = "a text, or blocks of text"},
    {.name = "is_error",
     .type = FieldType::kBoolean,
     .note = "true: the model reads \"Error: \" before the content"},
    kCacheControl,
};

constexpr Field kToolTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "the client's own tools; the server has none",
     .accepted = "\"custom\""},
    {.name = "name",
     .type = FieldType::kText,
     .note = "1 to 128 letters, digits, underscores and dashes",
     .required = true},
    {.name = "description", .type = FieldType::kText, .note = "tells the model what the tool is for"},
    {.name = "input_schema",
     .type = FieldType::kObject,
     .note = "the JSON schema of the arguments",
     .required = true},
    {.name = "strict",
     .type = FieldType::kBoolean,
     .note = "true: refuses a schema that the arguments could not be held to"},
    kCacheControl,
    {.name = "eager_input_streaming",
     .type = FieldType::kBoolean,
     .use = FieldUse::kHarmless,
     .note = "arguments are streamed as they come in any case"},
    {.name = "defer_loading",
     .type = FieldType::kBoolean,
     .use = FieldUse::kOnly,
     .note = "the model is told of all tools",
     .accepted = "false"},
    {.name = "allowed_callers",
     .type = FieldType::kList,
     .use = FieldUse::kOnly,
     .note = "tools are called by the model alone",
     .accepted = "[\"direct\"]"},
    {.name = "input_examples",
     .type = FieldType::kList,
     .use = FieldUse::kRefused,
     .note = "put examples into the description"},
};

constexpr Field kToolChoiceTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .note =
         "\"auto\", \"any\" (at least one), \"tool\" (the one of `name`) or \"none\", which also hides the "
         "tools from the model",
     .required = true},
    {.name = "name", .type = FieldType::kText, .note = "of \"tool\""},
    {.name = "disable_parallel_tool_use",
     .type = FieldType::kBoolean,
     .note = "true: an answer makes one call at most"},
};

constexpr Field kThinkingTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "answers have no thoughts of their own",
     .accepted = "\"disabled\" \"adaptive\"",
     .required = true},
    {.name = "display",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "there are no thoughts to display"},
    {.name = "budget_tokens",
     .type = FieldType::kInteger,
     .use = FieldUse::kRefused,
     .note = "answers have no thoughts of their own"},
};

constexpr Field kConfigTable[] = {
    {.name = "format", .type = FieldType::kObject, .note = "a JSON schema; its fields are below"},
    {.name = "effort",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "no effort can be chosen",
     .accepted = "\"high\""},
};

constexpr Field kFormatTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "the answer is JSON of the schema",
     .accepted = "\"json_schema\"",
     .required = true},
    {.name = "schema", .type = FieldType::kObject, .note = "the schema", .required = true},
};

constexpr std::array kCountTable = joined(kPromptTable, std::array<Field, 0>{});

}  // namespace

const FieldTable kMessagesFields = kMessagesTable;
const FieldTable kCountTokensFields = kCountTable;
const FieldTable kMessagesMessageFields = kMessageTable;
const FieldTable kTextBlockFields = kTextTable;
const FieldTable kToolUseBlockFields = kToolUseTable;
const FieldTable kToolResultBlockFields = kToolResultTable;
const FieldTable kMessagesToolFields = kToolTable;
const FieldTable kMessagesToolChoiceFields = kToolChoiceTable;
const FieldTable kThinkingFields = kThinkingTable;
const FieldTable kOutputConfigFields = kConfigTable;
const FieldTable kOutputFormatFields = kFormatTable;

}  // namespace verbatim::serve
