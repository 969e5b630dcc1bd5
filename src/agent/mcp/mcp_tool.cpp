#include <fmt/format.h>

#include "agent/mcp/mcp_client.h"
#include "agent/tools/schema_check.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

std::string member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : std::string();
}

/// A part of a result as text.
std::string text_of_part(const Json& part) {
  const std::string type = member(part, "type");
  if (type == "text") return member(part, "text");
  const Json& holder = type == "resource" && part.contains("resource") ? part["resource"] : part;
  if (type == "resource" && !member(holder, "text").empty()) return member(holder, "text");
  const std::string data = type == "resource" ? member(holder, "blob") : member(holder, "data");
  std::string about = "(" + (type.empty() ? "unknown content" : shown(type, kShownBytes));
  for (const char* const key : {"uri", "name", "mimeType"}) {
    if (!member(holder, key).empty()) about += ", " + shown(member(holder, key), kShownBytes);
  }
  if (!data.empty()) about += fmt::format(", {} bytes", data.size() / 4 * 3);
  return about + ")";
}

class McpCall : public ToolCall {
 public:
  McpCall(std::shared_ptr<McpClient> client, const std::string& tool, const Json& arguments,
          Json output_schema, ToolHooks hooks)
      : client_(std::move(client)), output_schema_(std::move(output_schema)), hooks_(std::move(hooks)) {
    number_ = client_->call(
        tool, arguments,
        [this](const Json& result, const std::string& error, bool again) { end(result, error, again); },
        hooks_.progress);
  }
  ~McpCall() override { client_->forget(number_); }
  void cancel() override { client_->cancel(number_); }

 private:
  void end(const Json& result, const std::string& error, bool again) {
    ToolResult outcome;
    try {
      outcome = error.empty() ? ToolResult::of(value_of_mcp_result(result, output_schema_))
                              : ToolResult::failure(shown(error, kShownAnswerBytes), again);
    } catch (const std::exception& failure) {
      outcome = ToolResult::failure(failure.what());
    }
    tell_done(hooks_, std::move(outcome));
  }

  std::shared_ptr<McpClient> client_;
  Json output_schema_;
  ToolHooks hooks_;
  int64_t number_ = 0;
};

class McpTool : public Tool {
 public:
  McpTool(std::shared_ptr<McpClient> client, const McpClient::Listed& listed, std::string as)
      : client_(std::move(client)),
        name_(listed.declaration.name),
        declaration_(listed.declaration),
        output_schema_(listed.output_schema) {
    declaration_.name = std::move(as);
  }
  const ToolDeclaration& declaration() const override { return declaration_; }
  std::shared_ptr<ToolCall> start(const Json& arguments, ToolHooks hooks) override {
    return std::make_shared<McpCall>(client_, name_, arguments, output_schema_, std::move(hooks));
  }

 private:
  std::shared_ptr<McpClient> client_;
  std::string name_;
  ToolDeclaration declaration_;
  Json output_schema_;
};

}  // namespace

Json value_of_mcp_result(const Json& result, const Json& output_schema) {
  if (!result.is_object()) throw Error(ErrorKind::kBadInput, "the server's result is no object");
  std::string text;
  bool first = true;
  if (result.contains("content") && result["content"].is_array()) {
    for (const Json& part : result["content"]) {
      if (!std::exchange(first, false)) text += '\n';
      text += text_of_part(part);
    }
  }
  if (result.contains("isError") && result["isError"] == true) {
    throw Error(ErrorKind::kBadInput, text.empty() ? "the tool failed" : shown(text, kShownAnswerBytes));
  }
  if (result.contains("structuredContent") && !result["structuredContent"].is_null()) {
    const Json& value = result["structuredContent"];
    if (const auto fault =
            output_schema.is_object() ? schema_fault(Term::of(value), output_schema, "") : std::nullopt) {
      throw Error(ErrorKind::kBadInput, "the result does not fit the schema that the server gave: " + *fault);
    }
    return value;
  }
  return text;
}

std::shared_ptr<Tool> mcp_tool(std::shared_ptr<McpClient> client, const McpClient::Listed& listed,
                               std::string as) {
  return std::make_shared<McpTool>(std::move(client), listed, std::move(as));
}

}  // namespace verbatim::agent
