#include "serve/prompt.h"

#include <fmt/format.h>

#include "serve/errors.h"
#include "serve/tools/forms.h"

namespace verbatim::serve {
namespace {

std::string written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The arguments of a call as templates want them: an object, or the text itself if it is none within the
/// limits of a request's JSON.
Json arguments_of(const ToolCall& call, JsonBudget& budget) {
  if (call.arguments.empty()) return Json::object();
  std::optional<Json> arguments = parse_inner(call.arguments, budget);
  return arguments && arguments->is_object() ? std::move(*arguments) : Json(call.arguments);
}

/// An id as the style's templates accept it. Mistral's want nine letters and digits, whichever interface or
/// model gave the id: any other becomes a number of its own, the same for a call and its result.
std::string id_for(const std::string& id, ToolStyle style) {
  static constexpr std::string_view kSigns = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (style != ToolStyle::kMistral) return id;
  if (id.size() == 9 && id.find_first_not_of(kSigns) == std::string::npos) return id;
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  std::string short_id;
  for (int i = 0; i < 9; ++i, hash /= kSigns.size()) short_id += kSigns[hash % kSigns.size()];
  return short_id;
}

/// The name of the tool whose result a message is.
std::string tool_name(const Question& question, const Message& result) {
  if (!result.name.empty()) return result.name;
  for (const Message& message : question.messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (call.id == result.tool_call_id) return call.name;
    }
  }
  return {};
}

Json function_of(const Tool& tool) {
  Json function = {{"name", tool.name}};
  if (!tool.description.empty()) function["description"] = tool.description;
  if (!tool.parameters.is_null()) function["parameters"] = tool.parameters;
  return {{"type", "function"}, {"function", std::move(function)}};
}

Json message_of(const Question& question, const Message& message, ToolStyle style, JsonBudget& budget) {
  Json object = {{"role", message.role}, {"content", message.content}};
  if (!message.tool_calls.empty()) {
    Json calls = Json::array();
    for (const ToolCall& call : message.tool_calls) {
      Json function = {{"name", call.name}, {"arguments", arguments_of(call, budget)}};
      calls.push_back(
          {{"id", id_for(call.id, style)}, {"type", "function"}, {"function", std::move(function)}});
    }
    object["tool_calls"] = std::move(calls);
  }
  if (message.role == "tool") {
    object["tool_call_id"] = id_for(message.tool_call_id, style);
  }
  const std::string name = message.role == "tool" ? tool_name(question, message) : message.name;
  if (!name.empty()) object["name"] = name;
  return object;
}

/// Tells a model of tools in the generic style.
std::string tools_in_words(const std::vector<Tool>& tools) {
  std::string text = "You can call these tools:\n";
  for (const Tool& tool : tools) text += written(function_of(tool)["function"]) + "\n";
  text +=
      "To call tools, reply with nothing but a JSON object of this form:\n"
      "{\"tool_calls\": [{\"name\": \"the tool's name\", \"arguments\": {\"the argument's name\": \"its "
      "value\"}}]}";
  return text;
}

/// A message's calls as the generic style writes them.
std::string calls_in_words(const Message& message) {
  std::string text;
  for (const ToolCall& call : message.tool_calls) {
    text += fmt::format("{}{{\"name\": {}, \"arguments\": {}}}", text.empty() ? "" : ", ",
                        written(Json(call.name)), call.arguments.empty() ? "{}" : call.arguments);
  }
  return fmt::format("{{\"tool_calls\": [{}]}}", text);
}

/// The same conversation for a template that knows no tools: tools, calls and results are words.
Question in_words(Question question) {
  const auto result_in_words = [&](const Message& message) {
    const std::string name = tool_name(question, message);
    return fmt::format("Result of the tool {}:\n{}", name.empty() ? message.tool_call_id : name,
                       message.content);
  };
  std::vector<Message> messages;
  if (!question.tools.empty()) {
    messages.push_back({.role = "system", .content = tools_in_words(question.tools)});
  }
  bool results = false;  // whether the last message is made of results, which then stand in one message
  for (const Message& message : question.messages) {
    const bool result = message.role == "tool";
    if (result && results) {
      messages.back().content += "\n\n" + result_in_words(message);
    } else if (result) {
      messages.push_back({.role = "user", .content = result_in_words(message)});
    } else if (message.role == "system" && messages.size() == 1 && messages[0].role == "system") {
      messages[0].content = message.content + "\n\n" + messages[0].content;
    } else if (!message.tool_calls.empty()) {
      const std::string between = message.content.empty() ? "" : "\n";
      messages.push_back(
          {.role = message.role, .content = message.content + between + calls_in_words(message)});
    } else {
      messages.push_back(message);
    }
    results = result;
  }
  question.messages = std::move(messages);
  question.tools.clear();
  return question;
}

}  // namespace

std::string render_variables(const Question& question, const ChatTemplate& chat_template, ToolStyle style) {
  if (question.tool_choice.kind == ToolChoice::Kind::kNone && !question.tools.empty()) {
    Question without = question;
    without.tools.clear();
    return render_variables(without, chat_template, style);
  }
  bool tools = !question.tools.empty();
  for (const Message& message : question.messages) {
    tools = tools || message.role == "tool" || !message.tool_calls.empty();
  }
  if (tools && !describes_calls(chat_template, style)) {
    return render_variables(in_words(question), chat_template, style);
  }
  Json variables = question.template_variables.is_object() ? question.template_variables : Json::object();
  variables["messages"] = Json::array();
  JsonBudget budget;
  for (const Message& message : question.messages) {
    variables["messages"].push_back(message_of(question, message, style, budget));
  }
  variables.erase("tools");
  for (const Tool& tool : question.tools) variables["tools"].push_back(function_of(tool));
  variables["add_generation_prompt"] = true;
  return written(variables);
}

std::vector<int32_t> conversation_tokens(const Question& question, const Model& model,
                                         const ChatTemplate& chat_template, ToolStyle style,
                                         const std::string& begun) {
  try {
    std::vector<PromptPart> parts =
        chat_template.render(render_variables(question, chat_template, style), &model);
    if (!begun.empty()) {
      if (parts.empty() || parts.back().from_template) parts.emplace_back();
      parts.back().text += begun;
    }
    return encode(model, parts);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadInput) throw;
    throw HttpError(400, error.what(), "messages");
  }
}

std::vector<int32_t> shown_marks(const Question& question, const Model& model, ToolStyle style) {
  std::vector<int32_t> tokens;
  if (question.tools.empty()) return tokens;
  std::vector<std::string_view> marks;
  if (style == ToolStyle::kHermes) marks = {kHermesMark, kHermesEnd};
  if (style == ToolStyle::kMistral) marks = {kMistralMark};
  for (const std::string_view mark : marks) {
    if (const auto token = model.find_token(mark)) tokens.push_back(*token);
  }
  return tokens;
}

void add_reply_ends(const Model& model, GenerateOptions& options) {
  Chat(model).add_stops(options);
}

}  // namespace verbatim::serve
