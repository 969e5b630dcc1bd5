#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "agent/mcp/mcp_client.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

/// A server of tools as a file of tools names it.
struct ConfiguredServer {
  McpServerOptions options;
  ToolEntry defaults;                 ///< policy and limits of its tools
  std::map<std::string, Json> tools;  ///< settings of single tools, by the server's names
};

/// Reads a file of tools: adds its commands and addresses to the set, and returns its servers. Throws
/// Error(kBadInput), naming the place, for what is not understood.
std::vector<ConfiguredServer> read_tools_file(RealLoop& loop, const std::filesystem::path& path,
                                              ToolSet& tools);

/// Throws Error(kBadInput), naming the setting and the tools that there are, if settings are for a tool that
/// the server does not have: a denial with a slip of the pen would deny nothing.
void require_tools(const ConfiguredServer& server, const std::vector<McpClient::Listed>& listed);

/// Sets policy and limits of a tool by an object of settings. Throws Error(kBadInput), naming `place`.
void apply_settings(const Json& settings, ToolEntry& entry, const std::string& place);

}  // namespace verbatim::agent
