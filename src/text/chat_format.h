#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "verbatim/chat.h"

namespace verbatim {

/// Finds the chat format that the vocabulary's special tokens suggest: "chatml", "llama-3" or "mistral", or
/// else "plain".
ChatFormat detect_chat_format(const Tokenizer& tokenizer);

/// Renders the user's turn: the text that the model reads between its last reply and its next one. `system`,
/// which may be empty, is used in the first turn only. What the format writes counts as a template's and has
/// special tokens; what the system or the user says has none. A beginning-of-sequence token belongs before
/// the first turn only.
std::vector<PromptPart> render_user_turn(const ChatFormat& format, std::string_view system,
                                         std::string_view user, bool first_turn);

}  // namespace verbatim
