#include <array>

#include "serve/responses/endpoints.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {
namespace {

constexpr Field unread(std::string_view name, FieldType type) {
  return {.name = name,
          .type = type,
          .use = FieldUse::kHarmless,
          .note = "a label for whoever runs the server; no answer depends on it"};
}

constexpr std::array kResponseTable = joined(
    kSamplingFields,
    std::array{
        Field{.name = "model",
              .type = FieldType::kText,
              .note = "the name of a model that the server has; the first one if it is absent"},
        Field{.name = "input",
              .type = FieldType::kTextOrList,
              .note = "a message of the user, or items of the types below",
              .required = true},
        Field{.name = "instructions",
              .type = FieldType::kText,
              .note = "a system message for this response; later ones do not inherit it"},
        Field{.name = "previous_response_id",
              .type = FieldType::kText,
              .note = "continues the conversation of a response that was stored"},
        Field{.name = "store",
              .type = FieldType::kBoolean,
              .note = "false: the response is not kept; true if it is absent. The server forgets responses "
                      "when it ends or has many of them"},
        Field{.name = "tools",
              .type = FieldType::kList,
              .note = "functions that the answer may call, or servers of tools that it calls itself "
                      "([tools of servers](server.md#tools-of-servers)), 128 at most"},
        Field{.name = "tool_choice",
              .type = FieldType::kTextOrObject,
              .note =
                  "\"none\", \"auto\", \"required\", or {\"type\": \"function\", \"name\": NAME}; \"none\" "
                  "also hides the tools from the model. With tools of servers \"auto\" or \"required\""},
        Field{.name = "parallel_tool_calls",
              .type = FieldType::kBoolean,
              .note =
                  "false: an answer makes one call at most, and one at a time of tools of servers; true if "
                  "it is absent"},
        Field{.name = "text",
              .type = FieldType::kObject,
              .note = "holds the answer to JSON, or to a schema; its fields are below"},
        Field{
            .name = "max_output_tokens",
            .type = FieldType::kInteger,
            .note =
                "the most tokens of the answer; if it is absent or more than fits, the context ends it. With "
                "tools of servers, of each plan and of the answer",
            .least = 1,
            .most = 1e9},
        Field{.name = "include",
              .type = FieldType::kList,
              .note = "\"message.output_text.logprobs\" gives log-probabilities; "
                      "\"reasoning.encrypted_content\" is taken, and there is none"},
        Field{
            .name = "top_logprobs",
            .type = FieldType::kInteger,
            .note = "as many of the likeliest tokens beside each, where `include` asks for log-probabilities",
            .least = 0,
            .most = 20},
        Field{.name = "stream",
              .type = FieldType::kBoolean,
              .note = "answers with server-sent events as the text comes"},
        Field{.name = "stream_options",
              .type = FieldType::kObject,
              .note = "with `stream` only; its field is below"},
        Field{.name = "metadata",
              .type = FieldType::kObject,
              .note = "up to 16 texts, which the response has too"},
        Field{.name = "reasoning",
              .type = FieldType::kObject,
              .note = "answers have no reasoning; its fields are below"},
        Field{.name = "verbatim",
              .type = FieldType::kObject,
              .note = "this server's own; see [the member verbatim](#the-member-verbatim)"},
        Field{.name = "truncation",
              .type = FieldType::kText,
              .use = FieldUse::kOnly,
              .note = "the server leaves nothing out of a conversation",
              .accepted = "\"disabled\""},
        Field{.name = "background",
              .type = FieldType::kBoolean,
              .use = FieldUse::kOnly,
              .note = "answers go to whoever asked",
              .accepted = "false"},
        Field{.name = "service_tier",
              .type = FieldType::kText,
              .use = FieldUse::kOnly,
              .note = "all requests are served alike",
              .accepted = "\"auto\" \"default\""},
        unread("user", FieldType::kText),
        unread("safety_identifier", FieldType::kText),
        unread("client_metadata", FieldType::kObject),
        Field{.name = "prompt_cache_key",
              .type = FieldType::kText,
              .use = FieldUse::kHarmless,
              .note = "beginnings of prompts are remembered without it"},
        Field{.name = "prompt_cache_retention",
              .type = FieldType::kText,
              .use = FieldUse::kHarmless,
              .note =
                  "beginnings of prompts are remembered while there is memory; answers do not depend on it"},
        Field{.name = "conversation", .use = FieldUse::kRefused, .note = "use `previous_response_id`"},
        Field{.name = "prompt", .use = FieldUse::kRefused, .note = "the server keeps no prompts"},
        Field{.name = "max_tool_calls",
              .type = FieldType::kInteger,
              .note = "the most calls of tools of servers, with such tools only",
              .least = 1,
              .most = 1e9},
        Field{.name = "context_management",
              .use = FieldUse::kRefused,
              .note = "the server leaves nothing out of a conversation"},
    });

constexpr Field kMessageTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"message\", which may be absent"},
    {.name = "role",
     .type = FieldType::kText,
     .note = "\"system\", \"developer\" (the same), \"user\" or \"assistant\"",
     .required = true},
    {.name = "content",
     .type = FieldType::kTextOrList,
     .note = "a text or a list of parts, which are put together",
     .required = true},
    {.name = "id", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "messages need no names"},
    {.name = "status",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
    {.name = "phase", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "templates know none"},
};

constexpr Field kPartTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"input_text\" or \"output_text\"", .required = true},
    {.name = "text", .type = FieldType::kText, .note = "the part's text", .required = true},
    {.name = "annotations",
     .type = FieldType::kList,
     .use = FieldUse::kOnly,
     .note = "clients send it back as they got it",
     .accepted = "[]"},
    {.name = "logprobs",
     .type = FieldType::kList,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
};

constexpr Field kCallTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"function_call\"", .required = true},
    {.name = "call_id", .type = FieldType::kText, .note = "names the call", .required = true},
    {.name = "name", .type = FieldType::kText, .note = "the function's", .required = true},
    {.name = "arguments", .type = FieldType::kText, .note = "a JSON text", .required = true},
    {.name = "id", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "`call_id` is the name"},
    {.name = "status",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
};

constexpr Field kResultTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"function_call_output\"", .required = true},
    {.name = "call_id", .type = FieldType::kText, .note = "the call that it answers", .required = true},
    {.name = "output", .type = FieldType::kTextOrList, .note = "a text or a list of parts", .required = true},
    {.name = "id", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "`call_id` is the name"},
    {.name = "status",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
};

constexpr Field kReasoningItemTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"reasoning\"", .required = true},
    {.name = "id", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "there is nothing to name"},
    {.name = "summary",
     .type = FieldType::kList,
     .use = FieldUse::kOnly,
     .note = "models read no reasoning of earlier answers",
     .accepted = "[]"},
    {.name = "content",
     .type = FieldType::kList,
     .use = FieldUse::kOnly,
     .note = "models read no reasoning of earlier answers",
     .accepted = "[]"},
    {.name = "encrypted_content",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "the server has no key for it",
     .accepted = "\"\""},
    {.name = "status",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
};

constexpr Field kListedItemTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"mcp_list_tools\"", .required = true},
    {.name = "id", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "there is nothing to name"},
    {.name = "server_label",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "each request names its servers"},
    {.name = "tools",
     .type = FieldType::kList,
     .use = FieldUse::kHarmless,
     .note = "the server knows what its servers have"},
    {.name = "error",
     .type = FieldType::kAny,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
};

constexpr Field kRunCallItemTable[] = {
    {.name = "type", .type = FieldType::kText, .note = "\"mcp_call\"", .required = true},
    {.name = "id", .type = FieldType::kText, .use = FieldUse::kHarmless, .note = "there is nothing to name"},
    {.name = "server_label",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer after it says what came of the call"},
    {.name = "name",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer after it says what came of the call"},
    {.name = "arguments",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer after it says what came of the call"},
    {.name = "output",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer after it says what came of the call"},
    {.name = "error",
     .type = FieldType::kAny,
     .use = FieldUse::kHarmless,
     .note = "the answer after it says what came of the call"},
    {.name = "status",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "clients send it back as they got it"},
    {.name = "approval_request_id",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "nobody is asked before a call"},
};

constexpr Field kServerToolTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "the tools of a server that this server knows",
     .accepted = "\"mcp\"",
     .required = true},
    {.name = "server_label",
     .type = FieldType::kText,
     .note = "the name of a server in the file of `--mcp`",
     .required = true},
    {.name = "allowed_tools",
     .type = FieldType::kAny,
     .note = "a list of names, or an object with the list `tool_names`: the other tools are left out"},
    {.name = "require_approval",
     .type = FieldType::kTextOrObject,
     .note = "\"never\", or an object with `never`, an object with the list `tool_names`: agrees to the "
             "calls of all tools or of those. Without it the file's policy must be `allow`"},
    {.name = "server_description",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the model reads what the server says of its tools"},
    {.name = "server_url",
     .use = FieldUse::kRefused,
     .note =
         "servers of tools are named by `server_label`, and whoever runs this server says where they are"},
    {.name = "authorization",
     .use = FieldUse::kRefused,
     .note = "whoever runs this server gives it what servers of tools ask for"},
    {.name = "headers",
     .use = FieldUse::kRefused,
     .note = "whoever runs this server gives it what servers of tools ask for"},
    {.name = "connector_id",
     .use = FieldUse::kRefused,
     .note = "servers of tools are named by `server_label`"},
};

constexpr Field kToolTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "a function of the client's",
     .accepted = "\"function\"",
     .required = true},
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

constexpr Field kToolChoiceTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "one function",
     .accepted = "\"function\"",
     .required = true},
    {.name = "name", .type = FieldType::kText, .note = "the function's", .required = true},
};

constexpr Field kTextTable[] = {
    {.name = "format", .type = FieldType::kObject, .note = "its fields are below"},
    {.name = "verbosity",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "no verbosity can be chosen",
     .accepted = "\"medium\""},
};

constexpr Field kFormatTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .note = "\"text\", \"json_object\" or \"json_schema\"",
     .required = true},
    {.name = "schema", .type = FieldType::kObject, .note = "of \"json_schema\": the schema"},
    {.name = "name",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer is held to the schema, whatever its name"},
    {.name = "description",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "the answer is held to the schema; what else the model should know belongs into a message"},
    {.name = "strict",
     .type = FieldType::kBoolean,
     .use = FieldUse::kHarmless,
     .note = "answers are always held to the schema"},
};

constexpr Field kReasoningTable[] = {
    {.name = "effort",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .note = "no effort can be chosen",
     .accepted = "\"none\""},
    {.name = "summary",
     .type = FieldType::kText,
     .use = FieldUse::kHarmless,
     .note = "there is no reasoning to sum up"},
};

constexpr Field kStreamTable[] = {
    {.name = "include_obfuscation",
     .type = FieldType::kBoolean,
     .use = FieldUse::kOnly,
     .note = "events have no padding against eavesdroppers",
     .accepted = "false"},
};

}  // namespace

const FieldTable kResponsesFields = kResponseTable;
const FieldTable kInputMessageFields = kMessageTable;
const FieldTable kInputPartFields = kPartTable;
const FieldTable kInputCallFields = kCallTable;
const FieldTable kInputResultFields = kResultTable;
const FieldTable kInputReasoningFields = kReasoningItemTable;
const FieldTable kInputListedFields = kListedItemTable;
const FieldTable kInputRunCallFields = kRunCallItemTable;
const FieldTable kResponsesServerFields = kServerToolTable;
const FieldTable kResponsesToolFields = kToolTable;
const FieldTable kResponsesToolChoiceFields = kToolChoiceTable;
const FieldTable kResponsesTextFields = kTextTable;
const FieldTable kTextFormatFields = kFormatTable;
const FieldTable kReasoningFields = kReasoningTable;
const FieldTable kResponsesStreamFields = kStreamTable;

}  // namespace verbatim::serve
