#pragma once

#include <string>
#include <vector>

#include "serve/conversation.h"
#include "serve/fields.h"

namespace verbatim::serve {

/// The most tools of a request to OpenAI's interfaces, and to Anthropic's, whose clients have more.
inline constexpr size_t kMostTools = 128;
inline constexpr size_t kMostAnthropicTools = 1024;

/// The tools that a request describes in its field `tools`, which keep to the table. Throws HttpError(400)
/// for more than `most`.
std::vector<Fields> tool_fields(const Fields& fields, FieldTable table, size_t most = kMostTools);

/// Adds a tool that a request describes in `fields`. Throws HttpError(400) about the field `name` unless it
/// is 1 to `longest` letters, digits, underscores and dashes and no other tool's.
void add_tool(std::vector<Tool>& tools, Tool tool, const Fields& fields, size_t longest = 64);

/// The choice of a tool by its name, which the field `name` of `fields` gives. Throws HttpError(400) unless
/// it is one of the tools.
ToolChoice named_choice(const std::vector<Tool>& tools, const Fields& fields);

}  // namespace verbatim::serve
