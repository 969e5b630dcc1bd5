#include "agent/config/tools_file.h"

#include <fmt/format.h>

#include "agent/tools/command_tool.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr size_t kMostFileOfTools = 4 << 20;
constexpr double kLongestSeconds = 86'400;

[[noreturn]] void bad(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::kBadInput, fmt::format("{}: {}", place, what));
}

/// Throws unless every key of an object is among the known ones.
void only(const Json& object, std::initializer_list<std::string_view> known, const std::string& place) {
  if (!object.is_object()) bad(place, "should be an object");
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      bad(place, fmt::format("`{}` is no key here", shown(key, kShownBytes)));
    }
  }
}

std::string text(const Json& object, const char* key, const std::string& place) {
  if (!object.contains(key)) return {};
  if (!object[key].is_string()) bad(place, fmt::format("`{}` should be a string", key));
  return object[key].get<std::string>();
}

std::vector<std::string> texts(const Json& object, const char* key, const std::string& place) {
  std::vector<std::string> all;
  if (!object.contains(key)) return all;
  const bool list = object[key].is_array();
  for (const Json& one : list ? object[key] : Json::array({nullptr})) {
    if (!one.is_string()) bad(place, fmt::format("`{}` should be a list of strings", key));
    all.push_back(one.get<std::string>());
  }
  return all;
}

std::map<std::string, std::string> pairs(const Json& object, const char* key, const std::string& place) {
  std::map<std::string, std::string> all;
  if (!object.contains(key)) return all;
  if (!object[key].is_object()) bad(place, fmt::format("`{}` should be an object of strings", key));
  for (const auto& [name, value] : object[key].items()) {
    if (!value.is_string()) bad(place, fmt::format("`{}.{}` should be a string", key, name));
    all[name] = value.get<std::string>();
  }
  return all;
}

double number(const Json& object, const char* key, double least, double most, const std::string& place) {
  const bool right =
      object[key].is_number() && object[key].get<double>() >= least && object[key].get<double>() <= most;
  if (!right) bad(place, fmt::format("`{}` should be a number from {} to {}", key, least, most));
  return object[key].get<double>();
}

Duration seconds(double seconds) {
  return Duration(static_cast<int64_t>(seconds * 1e6));
}

HttpHeaders headers(const Json& object, const std::string& place) {
  HttpHeaders all;
  for (const auto& [name, value] : pairs(object, "headers", place)) all.emplace_back(name, value);
  return all;
}

void add_function(RealLoop& loop, const Json& json, const std::string& place, ToolSet& tools) {
  only(json, {"type", "function", "command", "url", "headers", "env", "cwd", "settings"}, place);
  if (json.contains("type") && json["type"] != "function") bad(place, "`type` should be \"function\"");
  if (!json.contains("function")) bad(place, "`function` is missing");
  const Json& function = json["function"];
  only(function, {"name", "description", "parameters", "strict"}, place + ".function");
  ToolDeclaration declaration{.name = text(function, "name", place),
                              .description = text(function, "description", place)};
  if (function.contains("parameters")) {
    if (!function["parameters"].is_object()) bad(place, "`parameters` should be a JSON schema");
    declaration.parameters = function["parameters"];
  }
  const std::vector<std::string> command = texts(json, "command", place);
  const std::string url = text(json, "url", place);
  if (command.empty() == url.empty()) bad(place, "a tool has either a `command` or a `url`");
  ToolEntry entry;
  if (command.empty()) {
    entry.tool = url_tool(loop, declaration, url, headers(json, place));
  } else {
    entry.tool = command_tool(
        loop, declaration,
        {.command = command, .environment = pairs(json, "env", place), .folder = text(json, "cwd", place)});
  }
  if (json.contains("settings")) apply_settings(json["settings"], entry, place + ".settings");
  tools.add(std::move(entry));
}

ConfiguredServer server_of(const std::string& name, const Json& json, const std::string& place) {
  only(json, {"command", "args", "env", "cwd", "url", "headers", "settings", "tools"}, place);
  ConfiguredServer server;
  server.options.name = name;
  const std::string command = text(json, "command", place);
  server.options.url = text(json, "url", place);
  if (command.empty() == server.options.url.empty()) bad(place, "a server has either a `command` or a `url`");
  if (!command.empty()) {
    server.options.process.command = {command};
    for (std::string& word : texts(json, "args", place))
      server.options.process.command.push_back(std::move(word));
    server.options.process.environment = pairs(json, "env", place);
    server.options.process.folder = text(json, "cwd", place);
  }
  server.options.headers = headers(json, place);
  if (json.contains("settings")) apply_settings(json["settings"], server.defaults, place + ".settings");
  if (json.contains("tools")) {
    if (!json["tools"].is_object()) bad(place, "`tools` should be an object of settings");
    for (const auto& [tool, settings] : json["tools"].items()) {
      ToolEntry trial = server.defaults;
      apply_settings(settings, trial, place + ".tools." + tool);
      server.tools[tool] = settings;
    }
  }
  return server;
}

}  // namespace

void apply_settings(const Json& settings, ToolEntry& entry, const std::string& place) {
  only(settings,
       {"policy", "idempotent", "seconds", "retries", "back_off", "output_bytes", "concurrency",
        "hedge_after"},
       place);
  const std::string policy = text(settings, "policy", place);
  if (policy == "ask") entry.policy = Policy::kAsk;
  if (policy == "allow") entry.policy = Policy::kAllow;
  if (policy == "deny") entry.policy = Policy::kDeny;
  if (settings.contains("policy") && policy != "ask" && policy != "allow" && policy != "deny") {
    bad(place, "`policy` should be \"ask\", \"allow\" or \"deny\"");
  }
  if (settings.contains("idempotent")) {
    if (!settings["idempotent"].is_boolean()) bad(place, "`idempotent` should be true or false");
    entry.idempotent = settings["idempotent"].get<bool>();
  }
  const auto has = [&](const char* key) { return settings.contains(key); };
  ToolLimits& limits = entry.limits;
  if (has("seconds")) limits.time = seconds(number(settings, "seconds", 0.001, kLongestSeconds, place));
  if (has("retries")) limits.retries = static_cast<int>(number(settings, "retries", 0, 100, place));
  if (has("back_off")) limits.back_off = seconds(number(settings, "back_off", 0, 3600, place));
  if (has("output_bytes"))
    limits.output_bytes = static_cast<size_t>(number(settings, "output_bytes", 1, kMostAnswerBytes, place));
  if (has("concurrency"))
    limits.concurrency = static_cast<int>(number(settings, "concurrency", 1, 1000, place));
  if (has("hedge_after"))
    limits.hedge_after = seconds(number(settings, "hedge_after", 0, kLongestSeconds, place));
  if (limits.hedge_after > Duration(0) && !entry.idempotent) {
    bad(place, "`hedge_after` calls a tool twice, so the tool must be `idempotent`");
  }
}

void require_tools(const ConfiguredServer& server, const std::vector<McpClient::Listed>& listed) {
  for (const auto& [tool, settings] : server.tools) {
    std::string there;
    bool found = false;
    for (const McpClient::Listed& one : listed) {
      const std::string& name = one.declaration.name;
      found = found || name == tool;
      there += fmt::format("{}`{}`", there.empty() ? "" : ", ", shown(name, kShownBytes));
    }
    if (found) continue;
    bad(fmt::format("mcpServers.{}.tools.{}", shown(server.options.name, kShownBytes),
                    shown(tool, kShownBytes)),
        there.empty() ? "the server has no tools"
                      : "the server has no such tool; it has " + shown(there, kShownAnswerBytes));
  }
}

std::vector<ConfiguredServer> read_tools_file(RealLoop& loop, const std::filesystem::path& path,
                                              ToolSet& tools) {
  const std::string name = shown(path.string(), kShownBytes);
  const std::optional<Json> json = parse_json(read_text(path, kMostFileOfTools));
  if (!json) bad(name, "it is no JSON");
  only(*json, {"tools", "mcpServers"}, name);
  if (json->contains("tools")) {
    if (!(*json)["tools"].is_array()) bad(name, "`tools` should be a list");
    for (size_t i = 0; i < (*json)["tools"].size(); ++i) {
      add_function(loop, (*json)["tools"][i], fmt::format("{}: tools[{}]", name, i), tools);
    }
  }
  std::vector<ConfiguredServer> servers;
  if (!json->contains("mcpServers")) return servers;
  if (!(*json)["mcpServers"].is_object()) bad(name, "`mcpServers` should be an object");
  for (const auto& [server, options] : (*json)["mcpServers"].items()) {
    servers.push_back(
        server_of(server, options, fmt::format("{}: mcpServers.{}", name, shown(server, kShownBytes))));
  }
  return servers;
}

}  // namespace verbatim::agent
