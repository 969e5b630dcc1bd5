#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/conversation.h"
#include "serve/fields.h"
#include "verbatim/agent_service.h"

namespace verbatim::serve {

/// A tool of the type "mcp" in a request: tools of a server whose calls are made here.
struct ServerTools {
  std::string path;  ///< of the tool within the request ("tools[1]"), for errors
  std::string label;
  std::optional<std::vector<std::string>> allowed;  ///< none: all tools of the server
  bool agreed = false;                              ///< the client agrees to all calls
  std::vector<std::string> agreed_tools = {};       ///< or to those of these tools
};

/// A tool that a response may call, with the label of its server.
struct RunTool {
  std::string label;
  AgentTool tool;
};

/// Whether an element of `tools` has the type "mcp", or no type and what that type has.
bool is_server_tools(const Json& tool);

/// Reads such an element. Throws HttpError(400).
ServerTools read_server_tools(const Json& tool, const std::string& path);

/// Throws HttpError(400), naming the field, for what a request with tools of servers may not ask for as well:
/// functions of the client's, the form of the answer, and fields of sampling that plans are not written with.
void check_with_servers(const Fields& fields, const Question& question);

/// The tools that a request chose of those that a service has. Throws HttpError(400), naming the field, if
/// there is no service, server or tool of a name, or if somebody would have to be asked before a tool's
/// calls.
std::vector<RunTool> chosen_tools(const std::vector<ServerTools>& chosen, const AgentService* service);

}  // namespace verbatim::serve
