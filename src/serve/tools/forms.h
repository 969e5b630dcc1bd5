#pragma once

#include <string_view>

#include "serve/conversation.h"

namespace verbatim::serve {

// The fixed texts around calls of tools, which structures and the parser of replies share.
inline constexpr std::string_view kHermesMark = "<tool_call>";
inline constexpr std::string_view kHermesEnd = "</tool_call>";
inline constexpr std::string_view kMistralMark = "[TOOL_CALLS]";
inline constexpr std::string_view kLlama3Mark = "<|python_tag|>";
inline constexpr std::string_view kGenericKey = "\"tool_calls\"";

/// Whether a template tells a model of tools in words that make it write calls in the style. If not, prompts
/// describe tools themselves, in the generic style.
bool describes_calls(const ChatTemplate& chat_template, ToolStyle style);

}  // namespace verbatim::serve
