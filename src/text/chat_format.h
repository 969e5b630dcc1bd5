#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "verbatim/chat.h"

namespace verbatim {

/// The chat format that the special tokens of a vocabulary belong to: "chatml", "llama-3", "mistral", or else
/// "plain".
ChatFormat detect_chat_format(const Tokenizer& tokenizer);

/// The text of the user's turn: everything between the model's last reply and its next one. `system` is used
/// in the first turn only, and may be empty. The text is to be encoded with special tokens recognized, and
/// with a beginning-of-sequence token in the first turn only.
std::string render_user_turn(const ChatFormat& format, std::string_view system, std::string_view user,
                             bool first_turn);

}  // namespace verbatim
