#include "serve/responses/server_tools.h"

#include <array>

#include "serve/responses/endpoints.h"

namespace verbatim::serve {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what, const char* code) {
  throw HttpError(400, path + " " + what, path, code);
}

/// The names of a list, or of the list `tool_names` of an object.
std::vector<std::string> read_names(const Json& value, const std::string& path) {
  constexpr const char* kNames = "tool_names";
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      if (name != kNames) refuse(path + "." + shown(name, 40), "is not supported", "unsupported_parameter");
    }
    if (!value.contains(kNames)) refuse(path + "." + kNames, "is missing", "missing_required_parameter");
    return read_names(value[kNames], path + "." + kNames);
  }
  const auto text = [](const Json& one) { return one.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), text))
    refuse(path, "must be a list of names of tools", "invalid_type");
  constexpr size_t kMostNames = 1000;
  if (value.size() > kMostNames)
    refuse(path, fmt::format("has more than {} names", kMostNames), "invalid_value");
  return value.get<std::vector<std::string>>();
}

void read_approval(const Json& value, const std::string& path, ServerTools& tools) {
  if (value.is_string()) {
    if (value != "never") {
      refuse(path, "must be \"never\": this server asks nobody before a call", "unsupported_value");
    }
    tools.agreed = true;
    return;
  }
  for (const auto& [name, member] : value.items()) {
    if (name != "never") {
      refuse(path + "." + shown(name, 40), "is not supported: this server asks nobody before a call",
             "unsupported_value");
    }
    tools.agreed_tools = read_names(member, path + ".never");
  }
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Throws unless a server has all the tools of these names.
void require_names(const std::vector<std::string>& names, const AgentToolServer& server,
                   const std::string& path) {
  for (const std::string& name : names) {
    const auto is_it = [&](const AgentTool& tool) { return tool.name == name; };
    if (std::any_of(server.tools.begin(), server.tools.end(), is_it)) continue;
    refuse(path, fmt::format("names \"{}\", which is no tool of this server", shown(name, 80)),
           "invalid_value");
  }
}

}  // namespace

bool is_server_tools(const Json& tool) {
  if (!tool.is_object()) return false;
  const auto type = tool.find("type");
  return type == tool.end() || type->is_null() ? tool.contains("server_label") : *type == "mcp";
}

ServerTools read_server_tools(const Json& tool, const std::string& path) {
  const Fields fields(tool, kResponsesServerFields, path);
  ServerTools tools{.path = path, .label = *fields.text("server_label"), .allowed = {}};
  if (const Json* const allowed = fields.find("allowed_tools"))
    tools.allowed = read_names(*allowed, fields.path_of("allowed_tools"));
  if (const Json* const approval = fields.find("require_approval"))
    read_approval(*approval, fields.path_of("require_approval"), tools);
  return tools;
}

void check_with_servers(const Fields& fields, const Question& question) {
  constexpr const char* kNot = "is not supported with tools of the type \"mcp\"";
  constexpr const char* kCode = "unsupported_parameter";
  if (!question.tools.empty())
    fields.refuse("tools", "must be functions, or of the type \"mcp\" alone", kCode);
  const ToolChoice::Kind choice = question.tool_choice.kind;
  if (choice != ToolChoice::Kind::kAuto && choice != ToolChoice::Kind::kRequired) {
    fields.refuse("tool_choice", "must be \"auto\" or \"required\" with tools of the type \"mcp\"",
                  "unsupported_value");
  }
  if (question.format.kind != ReplyFormat::Kind::kText) fields.refuse("text", kNot, kCode);
  // Plans and answers are held to a grammar and drawn by temperature and seed alone. What asks for nothing is
  // taken.
  constexpr std::array<std::pair<const char*, double>, 7> kNeutral = {{{"top_p", 1},
                                                                       {"top_k", 0},
                                                                       {"min_p", 0},
                                                                       {"presence_penalty", 0},
                                                                       {"frequency_penalty", 0},
                                                                       {"repetition_penalty", 1},
                                                                       {"top_logprobs", 0}}};
  for (const auto& [name, neutral] : kNeutral) {
    if (fields.has(name) && fields.number(name) != neutral) fields.refuse(name, kNot, kCode);
  }
  for (const char* const name : {"logit_bias", "stop", "include"}) {
    const Json* const value = fields.find(name);
    if (value == nullptr || value->empty()) continue;
    if (*value == Json::array({"reasoning.encrypted_content"})) continue;
    fields.refuse(name, kNot, kCode);
  }
  bool user = false;
  bool begun = false;
  for (const Message& message : question.messages) {
    user = message.role == "user";
    if (message.role == "assistant" && !begun)
      fields.refuse("input", "must begin with a message of the user", "invalid_value");
    begun = begun || user;
    if (message.role == "tool" || !message.tool_calls.empty()) {
      fields.refuse("input", "has calls of functions, which cannot go on with tools of the type \"mcp\"",
                    "invalid_value");
    }
  }
  if (!user) fields.refuse("input", "must end with a message of the user", "invalid_value");
}

std::vector<RunTool> chosen_tools(const std::vector<ServerTools>& chosen, const AgentService* service) {
  std::vector<RunTool> tools;
  std::vector<std::string> labels;
  for (const ServerTools& one : chosen) {
    if (service == nullptr) {
      refuse(one.path + ".type",
             "\"mcp\" is switched off: this server was started without servers of tools (--mcp)",
             "unsupported_value");
    }
    const std::string label_path = one.path + ".server_label";
    const auto found = std::find_if(service->servers().begin(), service->servers().end(),
                                    [&](const AgentToolServer& server) { return server.label == one.label; });
    if (found == service->servers().end()) {
      refuse(label_path, fmt::format("\"{}\" is the name of no server of tools here", shown(one.label, 80)),
             "invalid_value");
    }
    if (has(labels, one.label)) refuse(label_path, "is that of another tool too", "invalid_value");
    labels.push_back(one.label);
    if (one.allowed) require_names(*one.allowed, *found, one.path + ".allowed_tools");
    require_names(one.agreed_tools, *found, one.path + ".require_approval");
    for (const AgentTool& tool : found->tools) {
      if (one.allowed && !has(*one.allowed, tool.name)) continue;
      if (tool.asks && !one.agreed && !has(one.agreed_tools, tool.name)) {
        refuse(one.path + ".require_approval",
               fmt::format("must be \"never\" for \"{}\": its policy is to ask, and this server asks nobody",
                           shown(tool.name, 80)),
               "invalid_value");
      }
      tools.push_back({.label = one.label, .tool = tool});
    }
  }
  return tools;
}

}  // namespace verbatim::serve
