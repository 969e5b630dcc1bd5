#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/chat_template.h"
#include "verbatim/generate.h"
#include "verbatim/model.h"

namespace verbatim {

/// How a conversation is written for a model. The user's turn is written by itself, so that the keys and
/// values of everything before it stay of use.
struct ChatFormat {
  std::string name;
  std::string system_begin;               ///< before the system's text, at the start of the first turn
  std::string system_end;                 ///< after the system's text
  bool system_inside_user = false;        ///< the system's text stands behind user_begin instead of before it
  std::string reply_end;                  ///< closes the model's last reply, without the token that ended it
  std::string user_begin;                 ///< before the user's text
  std::string user_end;                   ///< after the user's text, up to where the reply begins
  std::vector<std::string> stop_tokens;   ///< tokens that end a reply, besides the model's own end of text
  std::vector<std::string> stop_strings;  ///< texts that end a reply
};

/// The names of the chat formats that the library knows: "chatml", "llama-3", "llama-2", "mistral", "plain".
std::vector<std::string> chat_format_names();

/// The chat format of a name. Throws Error(kUsage), listing the names, if there is none.
ChatFormat chat_format(std::string_view name);

/// The chat format that the special tokens of a model's vocabulary belong to, or else "plain". Throws
/// Error(kBadInput) when the model has no vocabulary.
ChatFormat detect_chat_format(const Model& model);

/// One message of a conversation.
struct ChatMessage {
  enum class Role { kSystem, kUser, kAssistant };
  Role role = Role::kUser;
  std::string text;
};

/// The history of a conversation, as messages and as the tokens that the model sees. Messages of the user and
/// replies take turns, beginning with the user. A reply that was generated stays in the history with the very
/// tokens that the model said, so an Engine that has evaluated them need not do so again.
///
///   Chat chat(model, "Answer in one sentence.");
///   chat.add_user("What is the capital of France?");
///   GenerateOptions options;
///   chat.add_stops(options);
///   chat.add_reply(engine.generate({chat.tokens(), options, recipe}));
///
/// A Chat is a value: a copy goes its own way and shares nothing but the model. Not for use from several
/// threads at once.
class Chat {
 public:
  /// A conversation as the model's own chat template writes it, or, where the model has none, in the format
  /// that detect_chat_format() finds. `system` is told to the model before the
  /// first message; empty: nothing is. Throws Error(kBadInput) for text that is not UTF-8, a model without a
  /// vocabulary, or a template of the model's that cannot be parsed.
  explicit Chat(const Model& model, std::string system = {});
  /// A conversation in a given format.
  Chat(const Model& model, ChatFormat format, std::string system = {});
  /// A conversation as a template writes it. Where the template changes what was said before (it may leave
  /// out a reply's thoughts, say), the history is evaluated anew; otherwise replies stay as they were said.
  Chat(const Model& model, ChatTemplate chat_template, std::string system = {});

  /// Adds a message of the user. tokens() then is the prompt of the reply. Throws, leaving the history as it
  /// was, Error(kBadInput) when the text is not UTF-8 or leaves no room for a reply in the model's context,
  /// and Error(kUsage) when the last message has no reply yet.
  void add_user(std::string_view text);
  /// Adds the reply that was generated from tokens() as the prompt, without the tokens that only ended it.
  /// Throws Error(kUsage) when there is no message to reply to.
  void add_reply(const GenerateResult& result);
  /// Adds a reply that is given as text. Throws Error(kUsage) when there is no message to reply to, and
  /// Error(kBadInput) when the text is not UTF-8.
  void add_reply(std::string_view text);
  /// Begins anew, with the same system text.
  void clear();

  /// Makes generation end where a reply ends in this format: adds the format's stop tokens and stop strings
  /// to the options.
  void add_stops(GenerateOptions& options) const;

  /// The format of the conversation; with a template, its name is "template" and it has stop tokens only.
  const ChatFormat& format() const { return format_; }
  /// The messages in their order, the system's text first if there is any.
  const std::vector<ChatMessage>& messages() const { return messages_; }
  /// The tokens of the whole history, as the model sees it.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  /// The number of messages that have got their reply.
  int64_t turns() const { return turns_; }

 private:
  void require_waiting() const;
  /// The tokens of the history and a further message of the user, as the template writes them; `rendered`
  /// becomes the text that they stand for.
  std::vector<int32_t> templated_tokens(std::string_view text, std::string& rendered) const;

  Model model_;
  ChatFormat format_;
  std::optional<ChatTemplate> template_;
  std::string system_;
  std::vector<ChatMessage> messages_;
  std::vector<int32_t> tokens_;
  int64_t turns_ = 0;
  bool waiting_ = false;  // the last message has no reply yet
  std::string rendered_;  // with a template: the text that tokens_ stands for
  /// Text of the last reply that shares a token with the stop string behind it. The token is not in the
  /// history, so the text goes before the next turn.
  std::string carried_;
};

}  // namespace verbatim
