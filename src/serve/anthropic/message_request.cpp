#include "serve/anthropic/message_request.h"

#include "serve/anthropic/endpoints.h"
#include "serve/prompt.h"
#include "serve/tools/tool_list.h"

namespace verbatim::serve {
namespace {

constexpr size_t kMostStops = 16;

/// The type of a block, which comes before its fields can be checked.
std::string type_of(const Json& block, const std::string& path) {
  if (!block.is_object()) throw HttpError(400, path + " must be an object", path, "invalid_type");
  const auto type = block.find("type");
  if (type == block.end() || !type->is_string()) {
    throw HttpError(400, path + ".type must be a string", path + ".type", "invalid_type");
  }
  return type->get<std::string>();
}

[[noreturn]] void refuse_block(const std::string& path, const std::string& type, std::string_view good) {
  throw HttpError(400, fmt::format("{}.type is \"{}\"; supported here: {}", path, shown(type, 40), good),
                  path + ".type", "unsupported_value");
}

void add_line(std::string& text, const std::string& line) {
  if (!text.empty() && !line.empty()) text += "\n";
  text += line;
}

/// A text, or the texts of blocks of text, a line each.
std::string read_text(const Json* content, const std::string& path) {
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    const std::string type = type_of((*content)[i], place);
    if (type != "text") refuse_block(place, type, "\"text\"");
    add_line(text, *Fields((*content)[i], kTextBlockFields, place).text("text"));
  }
  return text;
}

/// Adds what a message's blocks say: results of tools, each a message of its own, and texts between them.
void read_user(const Json& content, const std::string& path, std::vector<Message>& messages) {
  Message message{.role = "user", .content = {}};
  bool results = false;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    const std::string type = type_of(content[i], place);
    if (type == "text") {
      add_line(message.content, *Fields(content[i], kTextBlockFields, place).text("text"));
    } else if (type == "tool_result") {
      const Fields fields(content[i], kToolResultBlockFields, place);
      if (!message.content.empty())
        messages.push_back(std::exchange(message, {.role = "user", .content = {}}));
      Message result{.role = "tool", .content = read_text(fields.find("content"), place + ".content")};
      if (fields.boolean("is_error").value_or(false)) result.content.insert(0, "Error: ");
      result.tool_call_id = *fields.text("tool_use_id");
      messages.push_back(std::move(result));
      results = true;
    } else {
      refuse_block(place, type, "\"text\" and \"tool_result\" in messages of the user");
    }
  }
  if (!message.content.empty() || !results) messages.push_back(std::move(message));
}

Message read_assistant(const Json& content, const std::string& path) {
  Message message{.role = "assistant", .content = {}};
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    const std::string type = type_of(content[i], place);
    if (type == "text") {
      add_line(message.content, *Fields(content[i], kTextBlockFields, place).text("text"));
    } else if (type == "tool_use") {
      const Fields fields(content[i], kToolUseBlockFields, place);
      message.tool_calls.push_back({*fields.text("id"), *fields.text("name"), dump(*fields.find("input"))});
    } else if (type != "thinking" && type != "redacted_thinking") {
      // Thoughts of earlier answers, by another server, are left out of prompts as Anthropic leaves them out.
      refuse_block(place, type, "\"text\" and \"tool_use\" in messages of the assistant");
    }
  }
  return message;
}

void read_messages(const Fields& fields, std::vector<Message>& messages) {
  const std::string system = read_text(fields.find("system"), "system");
  if (!system.empty()) messages.push_back({.role = "system", .content = system});
  const std::vector<Fields> all = fields.objects("messages", kMessagesMessageFields);
  for (const Fields& each : all) {
    const std::string role = *each.text("role");
    const Json& content = *each.find("content");
    const std::string path = each.path_of("content");
    if (role != "user" && role != "assistant") {
      each.refuse("role", "must be \"user\" or \"assistant\"", "invalid_value");
    }
    if (content.is_string()) {
      messages.push_back({.role = role, .content = content.get<std::string>()});
    } else if (role == "user") {
      read_user(content, path, messages);
    } else {
      messages.push_back(read_assistant(content, path));
    }
  }
  if (all.empty()) fields.refuse("messages", "must have at least one message", "invalid_value");
}

void read_tools(const Fields& fields, Question& question) {
  for (const Fields& each : tool_fields(fields, kMessagesToolFields, kMostAnthropicTools)) {
    constexpr size_t kLongestName = 128;
    Tool tool{.name = *each.text("name"),
              .description = each.text("description").value_or(""),
              .parameters = *each.find("input_schema"),
              .strict = each.boolean("strict").value_or(false)};
    add_tool(question.tools, std::move(tool), each, kLongestName);
  }
  const std::optional<Fields> choice = fields.object("tool_choice", kMessagesToolChoiceFields);
  if (!choice) return;
  const std::string type = *choice->text("type");
  question.parallel_tool_calls = !choice->boolean("disable_parallel_tool_use").value_or(false);
  if (choice->has("name") != (type == "tool")) {
    choice->refuse("name", type == "tool" ? "is missing" : "is for the type \"tool\"", "invalid_value");
  }
  if (type == "none") {
    question.tool_choice.kind = ToolChoice::Kind::kNone;
  } else if (type == "tool") {
    question.tool_choice = named_choice(question.tools, *choice);
  } else if (type == "any") {
    if (question.tools.empty())
      choice->refuse("type", "wants a call, and there are no tools", "invalid_value");
    question.tool_choice.kind = ToolChoice::Kind::kRequired;
  } else if (type != "auto") {
    choice->refuse("type", "must be \"auto\", \"any\", \"tool\" or \"none\"", "invalid_value");
  }
}

ReplyFormat read_format(const Fields& fields) {
  const std::optional<Fields> config = fields.object("output_config", kOutputConfigFields);
  if (!config) return {};
  const std::optional<Fields> format = config->object("format", kOutputFormatFields);
  if (!format) return {};
  return {.kind = ReplyFormat::Kind::kJsonSchema, .schema = dump(*format->find("schema"))};
}

std::vector<std::string> read_stops(const Fields& fields) {
  std::vector<std::string> stops = fields.texts("stop_sequences");
  if (stops.size() > kMostStops) {
    fields.refuse("stop_sequences", fmt::format("must be {} texts at most", kMostStops), "invalid_value");
  }
  if (std::find(stops.begin(), stops.end(), "") != stops.end()) {
    fields.refuse("stop_sequences", "must not have an empty text", "invalid_value");
  }
  return stops;
}

}  // namespace

MessageRequest::MessageRequest(std::string_view text, FieldTable table)
    : body(parse_body(text)), fields(body, table), model(*fields.text("model")) {
  read_messages(fields, question.messages);
  read_tools(fields, question);
  fields.object("thinking", kThinkingFields);
  question.format = read_format(fields);
  if (question.messages.back().role == "assistant") {
    if (!question.messages.back().tool_calls.empty()) {
      fields.refuse("messages", "must not end with a call of a tool that has no result", "invalid_value");
    }
    if (question.format.kind != ReplyFormat::Kind::kText) {
      fields.refuse("messages", "must not begin an answer whose form output_config.format gives",
                    "invalid_value");
    }
    begun = std::move(question.messages.back().content);
    question.messages.pop_back();
  }
  extension = read_extension(fields, false);
  max_tokens = fields.integer("max_tokens").value_or(0);
  stop = read_stops(fields);
  stream = fields.boolean("stream").value_or(false);
}

std::vector<int32_t> MessageRequest::prompt(const LoadedModel& loaded) const {
  return conversation_tokens(question, loaded.model, loaded.chat_template(), loaded.tool_style, begun);
}

HttpError with_anthropic_names(const HttpError& error) {
  std::string message = error.what();
  std::string param = error.param;
  const auto replace = [](std::string& text, std::string_view from, std::string_view to) {
    const size_t place = text.find(from);
    if (place != std::string::npos) text.replace(place, from.size(), to);
  };
  for (std::string* const text : {&message, &param}) {
    replace(*text, ".function.parameters", ".input_schema");
    replace(*text, "response_format.json_schema.schema", "output_config.format.schema");
  }
  return {error.status, message, param, error.code};
}

}  // namespace verbatim::serve
