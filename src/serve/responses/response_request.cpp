#include "serve/responses/response_request.h"

#include "serve/responses/endpoints.h"
#include "serve/sampling_fields.h"
#include "serve/tools/tool_list.h"

namespace verbatim::serve {
namespace {

/// The texts of parts, put together.
std::string read_parts(const Fields& fields, std::string_view name) {
  const Json& content = *fields.find(name);
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", fields.path_of(name), i);
    const Json& part = content[i];
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (part.is_object() && type != part.end() && *type != "input_text" && *type != "output_text") {
      throw HttpError(
          400, path + ".type must be \"input_text\" or \"output_text\": this server's models read text",
          path + ".type", "unsupported_value");
    }
    text += *Fields(part, kInputPartFields, path).text("text");
  }
  return text;
}

Message read_message(const Json& item, const std::string& path) {
  const Fields fields(item, kInputMessageFields, path);
  Message message{.role = *fields.text("role"), .content = read_parts(fields, "content")};
  if (message.role == "developer") message.role = "system";
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    fields.refuse("role", "must be \"system\", \"developer\", \"user\" or \"assistant\"", "invalid_value");
  }
  return message;
}

/// Adds an item to a conversation. Calls belong to the message of the assistant before them.
void read_item(const Json& item, const std::string& path, std::vector<Message>& messages) {
  const auto type = item.is_object() ? item.find("type") : item.end();
  const bool typed = item.is_object() && type != item.end() && !type->is_null();
  if (!typed && item.is_object() && !item.contains("role") && !item.contains("content")) {
    throw HttpError(400, path + ".type is missing", path + ".type", "missing_required_parameter");
  }
  if (!typed || *type == "message") {
    messages.push_back(read_message(item, path));
  } else if (*type == "function_call") {
    const Fields fields(item, kInputCallFields, path);
    if (messages.empty() || messages.back().role != "assistant") {
      messages.push_back({.role = "assistant", .content = {}});
    }
    messages.back().tool_calls.push_back(
        {*fields.text("call_id"), *fields.text("name"), *fields.text("arguments")});
  } else if (*type == "function_call_output") {
    const Fields fields(item, kInputResultFields, path);
    Message message{.role = "tool", .content = read_parts(fields, "output")};
    message.tool_call_id = *fields.text("call_id");
    messages.push_back(std::move(message));
  } else if (*type == "reasoning") {
    const Fields fields(item, kInputReasoningFields, path);
  } else if (*type == "mcp_list_tools") {
    const Fields fields(item, kInputListedFields, path);
  } else if (*type == "mcp_call") {
    const Fields fields(item, kInputRunCallFields, path);
  } else {
    throw HttpError(400,
                    path +
                        ".type must be \"message\", \"function_call\", \"function_call_output\", "
                        "\"reasoning\", \"mcp_list_tools\" or \"mcp_call\"",
                    path + ".type", "unsupported_value");
  }
}

std::vector<Message> read_conversation(const Fields& fields, const ResponseStore& store) {
  std::vector<Message> messages;
  if (const std::optional<std::string> id = fields.text("previous_response_id")) {
    const std::shared_ptr<const StoredResponse> previous = store.find(*id);
    if (previous == nullptr) {
      throw HttpError(
          400,
          fmt::format("previous_response_id: the server has no response \"{}\": it was not stored, "
                      "was deleted, or is too old",
                      shown(*id, 80)),
          "previous_response_id", "previous_response_not_found");
    }
    messages = previous->messages;
  }
  const Json& input = *fields.find("input");
  if (input.is_string()) {
    messages.push_back({.role = "user", .content = input.get<std::string>()});
    return messages;
  }
  for (size_t i = 0; i < input.size(); ++i) {
    read_item(input[i], fmt::format("input[{}]", i), messages);
  }
  if (messages.empty()) fields.refuse("input", "must have at least one item", "invalid_value");
  return messages;
}

/// The instructions and the conversation. System messages at its beginning become one, as many templates
/// take no more.
std::vector<Message> with_instructions(const Fields& fields, const std::vector<Message>& conversation) {
  std::vector<Message> messages;
  if (const std::optional<std::string> instructions = fields.text("instructions")) {
    messages.push_back({.role = "system", .content = *instructions});
  }
  for (const Message& message : conversation) {
    if (message.role == "system" && messages.size() == 1 && messages[0].role == "system") {
      messages[0].content += "\n\n" + message.content;
    } else {
      messages.push_back(message);
    }
  }
  return messages;
}

void read_tools(const Fields& fields, Question& question, std::vector<ServerTools>& servers) {
  const Json* const tools = fields.find("tools");
  if (tools != nullptr && tools->size() > kMostTools) {
    fields.refuse("tools", fmt::format("must be {} at most", kMostTools), "invalid_value");
  }
  for (size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", fields.path_of("tools"), i);
    if (is_server_tools((*tools)[i])) {
      servers.push_back(read_server_tools((*tools)[i], path));
      continue;
    }
    const Fields each((*tools)[i], kResponsesToolFields, path);
    const Json* const parameters = each.find("parameters");
    Tool tool{.name = *each.text("name"),
              .description = each.text("description").value_or(""),
              .parameters = parameters != nullptr ? *parameters
                                                  : Json{{"type", "object"}, {"properties", Json::object()}},
              .strict = each.boolean("strict").value_or(false)};
    add_tool(question.tools, std::move(tool), each);
  }
  question.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return;
  if (choice->is_object()) {
    question.tool_choice =
        named_choice(question.tools, *fields.object("tool_choice", kResponsesToolChoiceFields));
  } else if (*choice == "none") {
    question.tool_choice.kind = ToolChoice::Kind::kNone;
  } else if (*choice != "required") {
    fields.refuse("tool_choice", "must be \"none\", \"auto\", \"required\" or an object", "invalid_value");
  } else if (question.tools.empty() && servers.empty()) {
    fields.refuse("tool_choice", "wants a call, and there are no tools", "invalid_value");
  } else {
    question.tool_choice.kind = ToolChoice::Kind::kRequired;
  }
}

ReplyFormat read_format(const Fields& fields) {
  const std::optional<Fields> text = fields.object("text", kResponsesTextFields);
  const std::optional<Fields> format = text ? text->object("format", kTextFormatFields) : std::nullopt;
  if (!format) return {};
  const std::string type = *format->text("type");
  const bool schema = type == "json_schema";
  if (format->has("schema") != schema) {
    format->refuse("schema", schema ? "is missing" : "is for the type \"json_schema\"",
                   schema ? "missing_required_parameter" : "invalid_value");
  }
  if (schema) return {.kind = ReplyFormat::Kind::kJsonSchema, .schema = dump(*format->find("schema"))};
  if (type == "json_object") return {.kind = ReplyFormat::Kind::kJsonObject};
  if (type != "text") {
    format->refuse("type", "must be \"text\", \"json_object\" or \"json_schema\"", "invalid_value");
  }
  return {};
}

std::optional<int32_t> read_top_logprobs(const Fields& fields) {
  bool wanted = false;
  if (const Json* const include = fields.find("include")) {
    for (const Json& each : *include) {
      if (each == "message.output_text.logprobs") {
        wanted = true;
      } else if (each != "reasoning.encrypted_content") {
        fields.refuse("include",
                      "is supported only with \"message.output_text.logprobs\" and "
                      "\"reasoning.encrypted_content\"",
                      "unsupported_value");
      }
    }
  }
  const std::optional<int64_t> top = fields.integer("top_logprobs");
  if (wanted) return static_cast<int32_t>(top.value_or(0));
  if (top.value_or(0) > 0) {
    fields.refuse("top_logprobs", "is for requests that include \"message.output_text.logprobs\"",
                  "invalid_value");
  }
  return std::nullopt;
}

void check_metadata(const Fields& fields) {
  constexpr size_t kMost = 16;
  const Json* const metadata = fields.find("metadata");
  if (metadata == nullptr) return;
  const auto text = [](const Json& value) { return value.is_string(); };
  if (metadata->size() > kMost || !std::all_of(metadata->begin(), metadata->end(), text)) {
    fields.refuse("metadata", fmt::format("must be {} texts at most", kMost), "invalid_value");
  }
}

}  // namespace

ResponseRequest::ResponseRequest(std::string_view text, const ResponseStore& responses)
    : body(parse_body(text)), fields(body, kResponsesFields), model(fields.text("model").value_or("")) {
  messages = read_conversation(fields, responses);
  question.messages = with_instructions(fields, messages);
  read_tools(fields, question, servers);
  question.format = read_format(fields);
  extension = read_extension(fields, false);
  max_tokens = fields.integer("max_output_tokens");
  top_logprobs = read_top_logprobs(fields);
  stream = fields.boolean("stream").value_or(false);
  store = fields.boolean("store").value_or(true);
  fields.object("reasoning", kReasoningFields);
  if (fields.object("stream_options", kResponsesStreamFields) && !stream) {
    fields.refuse("stream_options", "is for requests with stream: true", "invalid_value");
  }
  check_metadata(fields);
  read_stop(fields);
  if (!servers.empty()) {
    check_with_servers(fields, question);
  } else if (fields.has("max_tool_calls")) {
    fields.refuse("max_tool_calls", "is for requests with tools of the type \"mcp\"", "invalid_value");
  }
}

HttpError with_response_names(const HttpError& error) {
  std::string message = error.what();
  std::string param = error.param;
  const auto replace = [](std::string& where, std::string_view from, std::string_view to) {
    const size_t place = where.find(from);
    if (place != std::string::npos) where.replace(place, from.size(), to);
  };
  for (std::string* const each : {&message, &param}) {
    replace(*each, ".function.parameters", ".parameters");
    replace(*each, "response_format.json_schema.schema", "text.format.schema");
    if (error.param == "messages") replace(*each, "messages", "input");
  }
  return {error.status, message, param, error.code};
}

}  // namespace verbatim::serve
