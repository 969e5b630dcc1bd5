#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/json.h"
#include "verbatim/verbatim.h"

namespace verbatim::serve {

/// A call of a tool that a model made.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  ///< a JSON text, as the model wrote it
};

/// A message of a conversation, as every interface's messages are read into.
struct Message {
  std::string role;                       ///< "system", "user", "assistant" or "tool"
  std::string content;                    ///< its text
  std::vector<ToolCall> tool_calls = {};  ///< of an assistant
  std::string tool_call_id = {};          ///< of a tool: the call that it is the result of
  std::string name = {};                  ///< of a tool: its name; of others: who speaks, for the template
};

/// A tool that a model may call.
struct Tool {
  std::string name;
  std::string description;
  Json parameters;      ///< the JSON schema of its arguments
  bool strict = false;  ///< whether its arguments must keep to the schema
};

/// Which tools a reply may call.
struct ToolChoice {
  enum class Kind { kNone, kAuto, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name = {};  ///< of kNamed
};

/// The form that a reply's text must have.
struct ReplyFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema };
  Kind kind = Kind::kText;
  std::string schema = {};  ///< of kJsonSchema, as a JSON text
};

/// What a client asks of a model in a conversation, whichever interface it speaks.
struct Question {
  std::vector<Message> messages;
  std::vector<Tool> tools = {};
  ToolChoice tool_choice = {};
  bool parallel_tool_calls = true;
  ReplyFormat format = {};
  Json template_variables = Json::object();  ///< further variables of the chat template
};

/// A part of a reply, as its text turns out to be words or calls of tools.
struct ReplyEvent {
  enum class Kind {
    kText,           ///< `text` continues the words
    kToolBegin,      ///< a call of the tool `name` begins, with `id`
    kToolArguments,  ///< `text` continues the arguments of the call that began last
    kToolEnd,        ///< the call that began last is complete
  };
  Kind kind = Kind::kText;
  std::string text = {};
  std::string id = {};
  std::string name = {};

  bool operator==(const ReplyEvent&) const = default;
};

/// The way in which a model's template writes calls of tools.
enum class ToolStyle {
  kHermes,   ///< <tool_call>\n{"name": …, "arguments": …}\n</tool_call> (Qwen, Hermes)
  kLlama3,   ///< {"name": …, "parameters": …} as the whole reply
  kMistral,  ///< [TOOL_CALLS][{"name": …, "arguments": …, "id": …}]
  kGeneric,  ///< {"tool_calls": [{"name": …, "arguments": …}]} as the whole reply
};

/// The style of a chat template, by what its text mentions.
ToolStyle tool_style(const ChatTemplate& chat_template);

/// The structure that a reply to a question is held to, or nothing where it may be any text: calls of tools
/// in the style's form with arguments that keep to the tools' schemas, or the question's format.
std::optional<Structure> reply_structure(const Question& question, ToolStyle style);

/// Reads a reply piece by piece, as a stream brings it. Text that may turn out to begin a call is held back
/// until it is certain. Calls of tools are recognized only if the question has tools and allows calls.
class ReplyParser {
 public:
  ReplyParser(const Question& question, ToolStyle style);

  /// Takes in the next piece of the reply's text and returns what is certain now.
  std::vector<ReplyEvent> push(std::string_view text);
  /// Takes in the end of the reply and returns the rest. A call that was cut off ends without kToolEnd.
  std::vector<ReplyEvent> finish();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verbatim::serve
