#pragma once

#include <string>
#include <vector>

#include "agent/net/http_client.h"
#include "agent/net/process.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

/// The most bytes that a command, an address or a server may answer before the call fails.
inline constexpr size_t kMostAnswerBytes = 8 << 20;

/// A tool that is a program. Its arguments arrive as JSON on standard input; `{name}` as a whole word of the
/// command is the argument of that name, and no shell reads it. What it prints is the result: JSON if it is
/// an object or a list, else text without the line's end. Any exit status but 0 is a failure, and its last
/// words on standard error say why.
std::shared_ptr<Tool> command_tool(RealLoop& loop, ToolDeclaration declaration, ProcessOptions process);

/// A tool that is an address: the arguments are posted to it as JSON, and what it answers is the result, as a
/// command's. Another attempt is worth it after a status of 429, and where nothing was sent.
std::shared_ptr<Tool> url_tool(RealLoop& loop, ToolDeclaration declaration, std::string url,
                               HttpHeaders headers);

/// What a tool printed or answered, as a value.
Json value_of_output(std::string output);

}  // namespace verbatim::agent
