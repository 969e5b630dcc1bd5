#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/mcp/mcp_transport.h"
#include "agent/tools/tool.h"

namespace verbatim::agent {

/// A server of tools that speaks the Model Context Protocol. It is started when it is first needed, and
/// again, a few times, after it ended.
class McpClient : public std::enable_shared_from_this<McpClient> {
 public:
  McpClient(RealLoop& loop, McpServerOptions options);
  ~McpClient();
  McpClient(const McpClient&) = delete;
  McpClient& operator=(const McpClient&) = delete;

  /// A tool as the server lists it.
  struct Listed {
    ToolDeclaration declaration;
    Json output_schema = nullptr;
  };
  /// Starts the server and asks for its tools; `done` is called once, with the tools or with what is wrong.
  void list(Duration limit, std::function<void(std::vector<Listed>, const std::string& error)> done);

  using Answer = std::function<void(Json result, const std::string& error, bool again)>;
  /// Calls a tool by the server's name of it. Returns a number for cancel(). The answer is not called from
  /// within this call.
  int64_t call(const std::string& tool, const Json& arguments, Answer answer,
               std::function<void(const std::string&)> progress);
  /// Tells the server that the answer is not wanted, and answers, soon, that the call was cancelled.
  void cancel(int64_t call);
  /// Forgets a call without another word.
  void forget(int64_t call);

  /// Lets the server end when it has read everything; `ended` is called when it has. Returns whether there is
  /// something to wait for.
  bool end(std::function<void()> ended);
  /// Asks the server's program to end at once.
  void stop();

  const std::string& name() const { return options_.name; }

 private:
  struct Pending {
    Answer answer;
    std::function<void(const std::string&)> progress;
    Json message;  ///< that waits until the server is ready; null once it is sent
    uint64_t timer = 0;
    std::optional<Time> told = {};  ///< when progress was told last
  };
  void ensure_started();
  int64_t request(const std::string& method, Json params, Answer answer);
  void send_waiting();
  /// Gives up the transport, which may be what calls: it is dropped in a call of its own.
  void retire_transport();
  void on_message(const Json& message);
  void on_closed(const std::string& why);
  void answer(int64_t id, Json result, const std::string& error, bool again);
  void list_page(const std::string& cursor, std::shared_ptr<std::vector<Listed>> found,
                 std::shared_ptr<int64_t> page, std::function<void(const std::string& error)> done);

  RealLoop& loop_;
  McpServerOptions options_;
  std::unique_ptr<McpTransport> transport_;
  std::vector<std::unique_ptr<McpTransport>> retired_;
  uint64_t retired_timer_ = 0;
  bool ready_ = false;
  int starts_ = 0;  // of which the last one is at most kLongLife ago
  Time last_start_{0};
  int64_t transports_ = 0;  // so far; the number of the present one
  int64_t made_ = 0;
  std::function<void()> ended_;
  std::map<int64_t, Pending> pending_;
};

/// Ends servers side by side as the protocol has it: their input ends, whoever is left after half a second is
/// asked to end by SIGTERM, and whoever is left after another half is killed. Runs the loop meanwhile, and
/// throws nothing that comes of it.
void end_servers(RealLoop& loop, const std::vector<std::shared_ptr<McpClient>>& clients);

/// A tool of a server as the executor calls it. Its name in plans is `as`.
std::shared_ptr<Tool> mcp_tool(std::shared_ptr<McpClient> client, const McpClient::Listed& listed,
                               std::string as);

/// What a result says, as a value: the structured content if there is any, or else the texts, and for what is
/// no text (pictures, sounds, other resources) a line that says what it is. Throws Error(kBadInput) with the
/// text of a result that is an error, and for one that is no result or does not fit the output schema.
Json value_of_mcp_result(const Json& result, const Json& output_schema);

}  // namespace verbatim::agent
