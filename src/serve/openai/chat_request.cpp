#include "serve/openai/chat_request.h"

#include "serve/openai/common_fields.h"
#include "serve/openai/endpoints.h"
#include "serve/tools/tool_list.h"

namespace verbatim::serve {

namespace {

// The parts of a call, and of a choice of a tool.
constexpr Field kCallTable[] = {
    {.name = "id", .type = FieldType::kText, .required = true},
    {.name = "type", .type = FieldType::kText, .use = FieldUse::kOnly, .accepted = "\"function\""},
    {.name = "function", .type = FieldType::kObject, .required = true},
    {.name = "index", .type = FieldType::kInteger, .use = FieldUse::kHarmless},
};
constexpr Field kCalledTable[] = {
    {.name = "name", .type = FieldType::kText, .required = true},
    {.name = "arguments", .type = FieldType::kText, .required = true},
};
constexpr Field kNamedTable[] = {
    {.name = "type",
     .type = FieldType::kText,
     .use = FieldUse::kOnly,
     .accepted = "\"function\"",
     .required = true},
    {.name = "function", .type = FieldType::kObject, .required = true},
};
constexpr Field kNameTable[] = {
    {.name = "name", .type = FieldType::kText, .required = true},
};

std::string read_content(const Fields& message) {
  const Json* const content = message.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  for (const Fields& part : message.objects("content", kChatPartFields)) {
    if (part.text("type") != "text") {
      part.refuse("type", "must be \"text\": this server's models read text alone", "unsupported_value");
    }
    if (!part.has("text")) part.refuse("text", "is missing", "missing_required_parameter");
    text += *part.text("text");
  }
  return text;
}

std::vector<ToolCall> read_calls(const Fields& message) {
  std::vector<ToolCall> calls;
  for (const Fields& call : message.objects("tool_calls", kCallTable)) {
    const Fields called = *call.object("function", kCalledTable);
    calls.push_back({*call.text("id"), *called.text("name"), *called.text("arguments")});
  }
  return calls;
}

/// The name of the tool that a call with this id was for.
std::string name_of_call(const std::vector<Message>& messages, const std::string& id) {
  for (const Message& message : messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (call.id == id) return call.name;
    }
  }
  return {};
}

std::vector<Message> read_messages(const Fields& fields) {
  std::vector<Message> messages;
  for (const Fields& each : fields.objects("messages", kChatMessageFields)) {
    Message message{.role = *each.text("role"), .content = read_content(each)};
    message.tool_calls = read_calls(each);
    message.tool_call_id = each.text("tool_call_id").value_or("");
    message.name = each.text("name").value_or("");
    if (message.role == "developer") message.role = "system";
    const bool assistant = message.role == "assistant";
    const bool tool = message.role == "tool";
    if (!assistant && !tool && message.role != "system" && message.role != "user") {
      each.refuse("role", "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"",
                  "invalid_value");
    }
    if (!each.has("content") && (!assistant || message.tool_calls.empty())) {
      each.refuse("content", "is missing", "missing_required_parameter");
    }
    if (each.has("tool_calls") && !assistant) {
      each.refuse("tool_calls", "is for messages of the assistant", "invalid_value");
    }
    if (each.has("tool_call_id") != tool) {
      each.refuse("tool_call_id", tool ? "is missing" : "is for messages of a tool",
                  tool ? "missing_required_parameter" : "invalid_value");
    }
    if (tool && message.name.empty()) message.name = name_of_call(messages, message.tool_call_id);
    messages.push_back(std::move(message));
  }
  if (messages.empty()) fields.refuse("messages", "must have at least one message", "invalid_value");
  return messages;
}

std::vector<Tool> read_tools(const Fields& fields) {
  std::vector<Tool> tools;
  for (const Fields& each : tool_fields(fields, kChatToolFields)) {
    const Fields function = *each.object("function", kChatFunctionFields);
    Tool tool;
    tool.name = *function.text("name");
    tool.description = function.text("description").value_or("");
    const Json* const parameters = function.find("parameters");
    tool.parameters =
        parameters != nullptr ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
    tool.strict = function.boolean("strict").value_or(false);
    add_tool(tools, std::move(tool), function);
  }
  return tools;
}

ToolChoice read_tool_choice(const Fields& fields, const std::vector<Tool>& tools) {
  using Kind = ToolChoice::Kind;
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return {};
  if (*choice == "none") return {.kind = Kind::kNone};
  if (choice->is_string() && *choice != "required") {
    fields.refuse("tool_choice", "must be \"none\", \"auto\", \"required\" or an object", "invalid_value");
  }
  if (tools.empty()) fields.refuse("tool_choice", "wants a call, and there are no tools", "invalid_value");
  if (choice->is_string()) return {.kind = Kind::kRequired};
  const Fields named = *fields.object("tool_choice", kNamedTable);
  const Fields function = *named.object("function", kNameTable);
  return named_choice(tools, function);
}

ReplyFormat read_format(const Fields& fields) {
  const std::optional<Fields> format = fields.object("response_format", kResponseFormatFields);
  if (!format) return {};
  const std::string type = *format->text("type");
  const bool schema = type == "json_schema";
  if (format->has("json_schema") != schema) {
    format->refuse("json_schema", schema ? "is missing" : "is for the type \"json_schema\"",
                   schema ? "missing_required_parameter" : "invalid_value");
  }
  if (type == "text") return {};
  if (type == "json_object") return {.kind = ReplyFormat::Kind::kJsonObject};
  if (!schema) {
    format->refuse("type", "must be \"text\", \"json_object\" or \"json_schema\"", "invalid_value");
  }
  const Fields json_schema = *format->object("json_schema", kJsonSchemaFields);
  return {.kind = ReplyFormat::Kind::kJsonSchema, .schema = dump(*json_schema.find("schema"))};
}

/// Refuses variables that the server or the model gives the template itself.
void check_variables(const Fields& fields, const Json& variables) {
  for (const char* const name : {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token",
                                 "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}) {
    if (!variables.contains(name)) continue;
    fields.refuse(fmt::format("chat_template_kwargs.{}", name), "is not for requests to choose",
                  "invalid_value");
  }
}

std::optional<int64_t> read_max_tokens(const Fields& fields) {
  const std::optional<int64_t> older = fields.integer("max_tokens");
  const std::optional<int64_t> newer = fields.integer("max_completion_tokens");
  if (older && newer && *older != *newer) {
    fields.refuse("max_tokens", "differs from max_completion_tokens", "invalid_value");
  }
  return newer ? newer : older;
}

}  // namespace

ChatRequest::ChatRequest(std::string_view text)
    : body(parse_body(text)), fields(body, kChatFields), model(fields.text("model").value_or("")) {
  question.messages = read_messages(fields);
  question.tools = read_tools(fields);
  question.tool_choice = read_tool_choice(fields, question.tools);
  question.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  question.format = read_format(fields);
  if (const Json* const variables = fields.find("chat_template_kwargs")) {
    check_variables(fields, *variables);
    question.template_variables = *variables;
  }
  choices = fields.integer("n").value_or(1);
  max_tokens = read_max_tokens(fields);
  stream = fields.boolean("stream").value_or(false);
  extension = read_extension(fields, stream);
  include_usage = read_include_usage(fields);
  if (fields.boolean("logprobs").value_or(false)) {
    top_logprobs = static_cast<int32_t>(fields.integer("top_logprobs").value_or(0));
  } else if (fields.has("top_logprobs")) {
    fields.refuse("top_logprobs", "is for requests with logprobs: true", "invalid_value");
  }
  read_stop(fields);
}

}  // namespace verbatim::serve
