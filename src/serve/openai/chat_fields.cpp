#include "serve/openai/common_fields.h"
#include "serve/openai/endpoints.h"

namespace verbatim::serve {

namespace {

constexpr std::array kChatTable = joined(
    kGenerationFields,
    std::array{
        Field{.name = "messages",
              .type = FieldType::kList,
              .note = "the conversation; their fields are below",
              .required = true},
        Field{.name = "tools",
              .type = FieldType::kList,
              .note = "functions that the answer may call, 128 at most"},
        Field{.name = "tool_choice",
              .type = FieldType::kTextOrObject,
              .note =
                  "\"none\", \"auto\", \"required\", or {\"type\": \"function\", \"function\": {\"name\": "
                  "NAME}}; \"none\" also hides the tools from the model"},
        Field{.name = "parallel_tool_calls",
              .type = FieldType::kBoolean,
              .note = "false: an answer makes one call at most; true if it is absent"},
        Field{.name = "response_format",
              .type = FieldType::kObject,
              .note = "holds the answer to JSON, or to a schema; its fields are below"},
        Field{.name = "logprobs",
              .type = FieldType::kBoolean,
              .note = "tells how likely the model held each token, by its own logits at temperature 1"},
        Field{.name = "top_logprobs",
              .type = FieldType::kInteger,
              .note = "with `logprobs`: as many of the likeliest tokens beside each",
              .least = 0,
              .most = 20},
        Field{.name = "max_completion_tokens",
              .type = FieldType::kInteger,
              .note = "the most tokens of the answer; if it is absent or more than fits, the context ends it",
              .least = 1,
              .most = 1e9},
        Field{.name = "max_tokens",
              .type = FieldType::kInteger,
              .note = "the older name of max_completion_tokens",
              .least = 1,
              .most = 1e9},
        Field{
            .name = "chat_template_kwargs",
            .type = FieldType::kObject,
            .note =
                "further variables of the model's chat template; those that the server or the model gives it "
                "are refused"},
        Field{.name = "store",
              .type = FieldType::kBoolean,
              .use = FieldUse::kOnly,
              .note = "chats are not stored",
              .accepted = "false"},
        Field{.name = "service_tier",
              .type = FieldType::kText,
              .use = FieldUse::kOnly,
              .note = "all requests are served alike",
              .accepted = "\"auto\" \"default\""},
        Field{.name = "modalities",
              .type = FieldType::kList,
              .use = FieldUse::kOnly,
              .note = "answers are text",
              .accepted = "[\"text\"]"},
        Field{.name = "reasoning_effort",
              .type = FieldType::kText,
              .use = FieldUse::kOnly,
              .note = "no effort can be chosen",
              .accepted = "\"none\""},
        Field{.name = "verbosity",
              .type = FieldType::kText,
              .use = FieldUse::kOnly,
              .note = "no verbosity can be chosen",
              .accepted = "\"medium\""},
        Field{.name = "prediction",
              .type = FieldType::kObject,
              .use = FieldUse::kHarmless,
              .note = "it only makes answers faster elsewhere; here drafts do"},
        label("metadata", FieldType::kObject),
        label("safety_identifier", FieldType::kText),
        Field{.name = "prompt_cache_key",
              .type = FieldType::kText,
              .use = FieldUse::kHarmless,
              .note = "beginnings of prompts are remembered without it"},
        Field{.name = "prompt_cache_retention",
              .type = FieldType::kText,
              .use = FieldUse::kHarmless,
              .note =
                  "beginnings of prompts are remembered while there is memory; answers do not depend on it"},
        Field{.name = "audio", .use = FieldUse::kRefused, .note = "answers are text"},
        Field{.name = "functions", .use = FieldUse::kRefused, .note = "use `tools`, which took its place"},
        Field{.name = "function_call",
              .use = FieldUse::kRefused,
              .note = "use `tool_choice`, which took its place"},
        Field{.name = "web_search_options", .use = FieldUse::kRefused, .note = "the server searches nothing"},
    });

constexpr Field kMessageTable[] = {
    {.name = "role",
     .type = FieldType::kText,
     .note = "\"system\", \"developer\" (the same), \"user\", \"assistant\" or \"tool\"",
     .required = true},
    {.name = "content",
     .type = FieldType::kTextOrList,
     .note = "a text or a list of parts, which are put together; an assistant's may be absent"},
    {.name = "name",
     .type = FieldType::kText,
     .note = "is given to the chat template, which few models' templates read"},
    {.name = "tool_calls", .type = FieldType::kList, .note = "of an assistant: the calls that it made"},
    {.name = "tool_call_id", .type = FieldType::kText, .note = "of a tool: the call that it answers"},
    {.name = "annotations",
     .type = FieldType::kList,
     .use = FieldUse::kOnly,
     .note = "clients send it back as they got it",
     .accepted = "[]"},
    {.name = "refusal", .use = FieldUse::kRefused, .note = "models see no refusals apart from texts"},
    {.name = "audio", .use = FieldUse::kRefused, .note = "models read text"},
    {.name = "function_call", .use = FieldUse::kRefused, .note = "use `tool_calls`, which took its place"},
};

constexpr Field kPartTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"text\"", .required = true},
    {.name = "text", .type = FieldType::kText, .note = "the part's text"},
    {.name = "cache_control",
     .type = FieldType::kObject,
     .use = FieldUse::kHarmless,
     .note = "beginnings of prompts are remembered without it"},
    {.name = "image_url", .use = FieldUse::kRefused, .note = "models read text"},
    {.name = "input_audio", .use = FieldUse::kRefused, .note = "models read text"},
    {.name = "file", .use = FieldUse::kRefused, .note = "models read text"},
    {.name = "refusal", .use = FieldUse::kRefused, .note = "models see no refusals apart from texts"},
};

constexpr Field kToolTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "tools are functions",
     .accepted = "\"function\"",
     .required = true},
    {.name = "function", .type = FieldType::kObject, .note = "the function", .required = true},
};

constexpr Field kFunctionTable[] = {
    {.name = "name",
     .type = FieldType::kText,
     .note = "1 to 64 letters, digits, underscores and dashes",
     .required = true},
    {.name = "description", .type = FieldType::kText, .note = "tells the model what the function is for"},
    {.name = "parameters",
     .type = FieldType::kObject,
     .note = "the JSON schema of the arguments; none if it is absent"},
    {.name = "strict",
     .type = FieldType::kBoolean,
     .note = "true: refuses a schema that the arguments could not be held to"},
};

constexpr Field kFormatTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .note = "\"text\", \"json_object\" or \"json_schema\"",
     .required = true},
    {.name = "json_schema", .type = FieldType::kObject, .note = "of \"json_schema\"; its fields are below"},
};

constexpr Field kSchemaTable[] = {
    {.name = "name",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer is held to the schema, whatever its name"},
    {.name = "description",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer is held to the schema; what else the model should know belongs into a message"},
    {.name = "schema", .type = FieldType::kObject, .note = "the schema", .required = true},
    {.name = "strict",
     .type = FieldType::kBoolean,
     .use = FieldUse::kHarmless,
     .note = "answers are always held to the schema"},
};

}  // namespace

const FieldTable kChatFields = kChatTable;
const FieldTable kChatMessageFields = kMessageTable;
const FieldTable kChatPartFields = kPartTable;
const FieldTable kChatToolFields = kToolTable;
const FieldTable kChatFunctionFields = kFunctionTable;
const FieldTable kResponseFormatFields = kFormatTable;
const FieldTable kJsonSchemaFields = kSchemaTable;

}  // namespace verbatim::serve
