#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// How a conversation is written for a model. A turn of the user is rendered on its own, so that what was
/// said before stays in the KV cache.
struct ChatFormat {
  std::string name;
  std::string system_begin;  ///< before the system's text, at the start of the first turn
  std::string system_end;
  bool system_inside_user = false;  ///< the system's text goes behind user_begin instead of before it
  std::string reply_end;  ///< closes the model's last reply; the token that ended it is not in the cache
  std::string user_begin;
  std::string user_end;                   ///< after the user's text, up to where the reply begins
  std::vector<std::string> stop_tokens;   ///< tokens that end a reply, besides the model's own end of text
  std::vector<std::string> stop_strings;  ///< texts that end a reply
};

/// The format that the vocabulary's special tokens speak for: "chatml", "llama-3", "mistral", or else
/// "plain".
ChatFormat detect_chat_format(const Tokenizer& tokenizer);

/// The format of that name. Throws Error(kUsage), listing the names, if there is none.
ChatFormat chat_format(std::string_view name);

/// What goes into the model between its last reply and its next: the user's turn. `system` is used in the
/// first turn only, and may be empty. Encode it with special tokens recognised, and a beginning-of-sequence
/// token in the first turn only.
std::string render_user_turn(const ChatFormat& format, std::string_view system, std::string_view user,
                             bool first_turn);

std::vector<std::string> stop_strings(const ChatFormat& format);
std::vector<std::string> stop_tokens(const ChatFormat& format);

}  // namespace verbatim
