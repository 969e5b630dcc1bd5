#include "agent/config/tool_servers.h"

#include <fmt/format.h>

#include "agent/loop/real_loop.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr Duration kListLimit = std::chrono::seconds(30);

/// Starts the servers, and returns what each of them lists.
std::vector<std::vector<McpClient::Listed>> listed_by(RealLoop& loop,
                                                      const std::vector<ConfiguredServer>& servers,
                                                      std::vector<std::shared_ptr<McpClient>>& clients) {
  std::vector<std::vector<McpClient::Listed>> listed(servers.size());
  std::string failure;
  size_t open = servers.size();
  loop.post([&] {
    for (size_t i = 0; i < servers.size(); ++i) {
      clients.push_back(std::make_shared<McpClient>(loop, servers[i].options));
      clients[i]->list(kListLimit, [&, i](std::vector<McpClient::Listed> found, const std::string& error) {
        listed[i] = std::move(found);
        if (!error.empty() && failure.empty()) {
          failure =
              fmt::format("the server of tools `{}`: {}", shown(servers[i].options.name, kShownBytes), error);
        }
        if (--open == 0) loop.stop();
      });
    }
  });
  loop.run();
  if (!failure.empty()) throw Error(ErrorKind::kBadInput, failure);
  return listed;
}

}  // namespace

std::vector<ServedTool> connect_servers(RealLoop& loop, const std::vector<ConfiguredServer>& servers,
                                        std::vector<std::shared_ptr<McpClient>>& clients, ToolSet& tools,
                                        std::vector<std::string>& warnings) {
  std::vector<ServedTool> served;
  if (servers.empty()) return served;
  const std::vector<std::vector<McpClient::Listed>> listed = listed_by(loop, servers, clients);
  for (size_t i = 0; i < servers.size(); ++i) {
    require_tools(servers[i], listed[i]);
    for (const McpClient::Listed& one : listed[i]) {
      ToolEntry entry = servers[i].defaults;
      const auto settings = servers[i].tools.find(one.declaration.name);
      if (settings != servers[i].tools.end()) apply_settings(settings->second, entry, one.declaration.name);
      // Two servers may have tools of the same name, and a server may have a tool that no plan can call.
      std::string name = one.declaration.name;
      const std::string why = tools.refusal(name);
      if (!why.empty()) name = servers[i].options.name + "." + name;
      if (!tools.refusal(name).empty()) {
        warnings.push_back(fmt::format("a tool of the server `{}` is left out: {}",
                                       shown(servers[i].options.name, kShownBytes), why));
        continue;
      }
      entry.tool = mcp_tool(clients[i], one, name);
      served.push_back({.server = i, .name = one.declaration.name, .as = name});
      tools.add(std::move(entry));
    }
  }
  return served;
}

}  // namespace verbatim::agent
