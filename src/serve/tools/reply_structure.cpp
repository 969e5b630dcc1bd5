#include <fmt/format.h>

#include "serve/conversation.h"
#include "serve/errors.h"
#include "serve/tools/forms.h"

namespace verbatim::serve {
namespace {

std::string written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The arguments of a tool. Schemas that cannot be kept to are refused where a client insists on them.
Structure arguments_of(const Tool& tool, size_t index) {
  if (tool.parameters.is_null()) return Structure::text("{}");
  const std::string field = fmt::format("tools[{}].function.parameters", index);
  const auto type = tool.parameters.is_object() ? tool.parameters.find("type") : tool.parameters.end();
  const bool object = tool.parameters.is_object() && type != tool.parameters.end() && *type == "object";
  if (!object) {
    if (tool.strict) throw HttpError(400, field + ": the schema's type must be \"object\"", field);
    return Structure::json_object();
  }
  try {
    return Structure::json_schema(written(tool.parameters));
  } catch (const Error& error) {
    if (tool.strict) throw HttpError(400, fmt::format("{}: {}", field, error.what()), field);
    return Structure::json_object();
  }
}

/// The object of a call of a tool.
Structure call_of(const Tool& tool, size_t index, ToolStyle style) {
  const std::string_view key = style == ToolStyle::kLlama3 ? "parameters" : "arguments";
  return Structure::sequence(
      {Structure::text(fmt::format("{{\"name\": {}, \"{}\": ", written(Json(tool.name)), key)),
       arguments_of(tool, index), Structure::text("}")});
}

/// The object of a call of any tool that the question allows.
Structure any_call(const Question& question, ToolStyle style) {
  std::vector<Structure> calls;
  for (size_t i = 0; i < question.tools.size(); ++i) {
    const Tool& tool = question.tools[i];
    if (question.tool_choice.kind == ToolChoice::Kind::kNamed && tool.name != question.tool_choice.name) {
      continue;
    }
    calls.push_back(call_of(tool, i, style));
  }
  if (calls.empty()) {
    throw HttpError(400, fmt::format("tool_choice: there is no tool \"{}\"", question.tool_choice.name),
                    "tool_choice");
  }
  return calls.size() == 1 ? calls.front() : Structure::choice(std::move(calls));
}

/// At least one call, at most `most` of them; -1: any number.
Structure calls_of(const Question& question, ToolStyle style, int most) {
  const Structure call = any_call(question, style);
  switch (style) {
    case ToolStyle::kHermes:
      return Structure::repeat(
          Structure::sequence({Structure::special(kHermesMark), Structure::text("\n"), call,
                               Structure::text("\n"), Structure::special(kHermesEnd)}),
          1, most, "\n");
    case ToolStyle::kLlama3:
      return call;  // templates of this style refuse conversations with several calls in a message
    case ToolStyle::kMistral:
      return Structure::sequence({Structure::special(kMistralMark), Structure::text("["),
                                  Structure::repeat(call, 1, most, ", "), Structure::text("]")});
    case ToolStyle::kGeneric:
      break;
  }
  return Structure::sequence({Structure::text(fmt::format("{{{}: [", kGenericKey)),
                              Structure::repeat(call, 1, most, ", "), Structure::text("]}")});
}

/// What the words of a reply must not contain, because a call would begin there.
std::vector<std::string> beginnings(const Question& question, ToolStyle style) {
  switch (style) {
    case ToolStyle::kHermes:
      return {std::string(kHermesMark)};
    case ToolStyle::kMistral:
      return {std::string(kMistralMark)};
    case ToolStyle::kGeneric:
      return {fmt::format("{{{}", kGenericKey)};
    case ToolStyle::kLlama3:
      break;
  }
  constexpr size_t kMostCharacters = 2048;  // of names; of more, structures would become too large
  std::vector<std::string> names;
  size_t characters = 0;
  for (const Tool& tool : question.tools) {
    names.push_back(fmt::format("{{\"name\": {}", written(Json(tool.name))));
    characters += tool.name.size();
  }
  return characters > kMostCharacters ? std::vector<std::string>{"{\"name\": "} : names;
}

/// The question's format, or nothing for plain words.
std::optional<Structure> format_of(const ReplyFormat& format) {
  if (format.kind == ReplyFormat::Kind::kText) return std::nullopt;
  if (format.kind == ReplyFormat::Kind::kJsonObject) return Structure::json_object();
  try {
    return Structure::json_schema(format.schema);
  } catch (const Error& error) {
    throw HttpError(400, fmt::format("response_format.json_schema.schema: {}", error.what()),
                    "response_format.json_schema.schema");
  }
}

}  // namespace

std::optional<Structure> reply_structure(const Question& question, ToolStyle style) {
  std::optional<Structure> format = format_of(question.format);
  if (question.tools.empty()) return format;
  const auto words = [&] { return format ? *format : Structure::free_text(beginnings(question, style)); };
  const int most = question.parallel_tool_calls ? -1 : 1;
  switch (question.tool_choice.kind) {
    case ToolChoice::Kind::kNone:
      return words();
    case ToolChoice::Kind::kRequired:
      return calls_of(question, style, most);
    case ToolChoice::Kind::kNamed:
      return calls_of(question, style, 1);
    case ToolChoice::Kind::kAuto:
      break;
  }
  const Structure calls = calls_of(question, style, most);
  const bool anywhere = style == ToolStyle::kHermes || style == ToolStyle::kMistral;
  if (!anywhere || format) return Structure::choice({words(), calls});
  return Structure::sequence({words(), Structure::repeat(calls, 0, 1)});
}

}  // namespace verbatim::serve
