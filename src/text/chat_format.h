#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// A chat format: how a conversation is written for a model. A turn of the user is rendered on its own, so
/// that earlier turns stay in the cache.
struct ChatFormat {
  std::string name;
  std::string system_begin;         ///< written before the system's text, at the start of the first turn
  std::string system_end;           ///< written after the system's text
  bool system_inside_user = false;  ///< the system's text comes after user_begin instead of before it
  std::string reply_end;   ///< closes the model's last reply; the token that ended it is not in the cache
  std::string user_begin;  ///< written before the user's text
  std::string user_end;    ///< written after the user's text, up to the beginning of the reply
  std::vector<std::string> stop_tokens;   ///< tokens that end a reply, besides the model's own end of text
  std::vector<std::string> stop_strings;  ///< texts that end a reply
};

/// Finds the chat format that the vocabulary's special tokens suggest: "chatml", "llama-3" or "mistral", or
/// else "plain".
ChatFormat detect_chat_format(const Tokenizer& tokenizer);

/// The chat format with a name. Throws Error(kUsage), listing all names, if there is none.
ChatFormat chat_format(std::string_view name);

/// Renders the user's turn: the text that the model reads between its last reply and its next one. `system`,
/// which may be empty, is used in the first turn only. The result must be encoded with special tokens
/// recognised, and with a beginning-of-sequence token in the first turn only.
std::string render_user_turn(const ChatFormat& format, std::string_view system, std::string_view user,
                             bool first_turn);

std::vector<std::string> stop_strings(const ChatFormat& format);
std::vector<std::string> stop_tokens(const ChatFormat& format);

}  // namespace verbatim
