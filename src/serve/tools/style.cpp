#include <string_view>

#include "serve/conversation.h"
#include "serve/tools/forms.h"

namespace verbatim::serve {

ToolStyle tool_style(const ChatTemplate& chat_template) {
  const std::string_view source = chat_template.source();
  const auto mentions = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
  // Some templates put calls in XML between the same marks.
  if (mentions(kHermesMark) && !mentions("<function=")) return ToolStyle::kHermes;
  if (mentions(kMistralMark)) return ToolStyle::kMistral;
  const bool parameters = mentions("\"parameters\": ") || mentions("\\\"parameters\\\": ");
  if (parameters && !mentions("\"tool_calls\"") && (mentions("<|python_tag|>") || mentions("{\"name\": "))) {
    return ToolStyle::kLlama3;
  }
  return ToolStyle::kGeneric;
}

bool describes_calls(const ChatTemplate& chat_template, ToolStyle style) {
  if (!chat_template.reads("tools")) return false;
  const std::string& source = chat_template.source();
  return style != ToolStyle::kGeneric || source.find("{\"tool_calls\"") != std::string::npos ||
         source.find("{\\\"tool_calls\\\"") != std::string::npos;
}

}  // namespace verbatim::serve
