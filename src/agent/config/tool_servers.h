#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/config/tools_file.h"
#include "agent/mcp/mcp_client.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

/// A tool of a server that was added to a set of tools.
struct ServedTool {
  size_t server = 0;      ///< the place of its server among those that were connected
  std::string name = {};  ///< the server's name of it
  std::string as = {};    ///< its name in the set
};

/// Starts all servers side by side, waits for what they list, and adds their tools to the set: by the
/// server's name of it, or as `server.tool` where that name is taken or ends plans. One that no plan can call
/// by that name either is left out, and `warnings` gets a line. `clients` gets a client for each server, as
/// soon as it is started. Runs the loop meanwhile. Throws Error(kBadInput) for a server that cannot be had
/// and for settings of a tool that its server does not have.
std::vector<ServedTool> connect_servers(RealLoop& loop, const std::vector<ConfiguredServer>& servers,
                                        std::vector<std::shared_ptr<McpClient>>& clients, ToolSet& tools,
                                        std::vector<std::string>& warnings);

}  // namespace verbatim::agent
