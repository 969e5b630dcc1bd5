#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/json.h"
#include "agent/net/http_client.h"
#include "agent/net/process.h"

namespace verbatim::agent {

/// Where a server of tools is.
struct McpServerOptions {
  std::string name = {};
  ProcessOptions process = {};  ///< over its standard streams, if it has a command
  std::string url = {};         ///< over streamable HTTP otherwise
  HttpHeaders headers = {};
};

struct McpTransportHooks {
  std::function<void(Json message)> message = {};
  /// Called once, when no message will come any more; says why.
  std::function<void(const std::string& why)> closed = {};
  /// Called over HTTP for the failure of a single request; says why, and whether the server did nothing of
  /// it.
  std::function<void(int64_t request, const std::string& why, bool again)> failed = {};
};

/// Carries messages of the Model Context Protocol to a server and back.
class McpTransport {
 public:
  /// Closes it; no hook is called any more.
  virtual ~McpTransport() = default;
  virtual void send(const Json& message) = 0;
  /// Gives up the answer to a request.
  virtual void forget(int64_t request) = 0;
  /// Tells the server's program that nothing will be sent any more. Returns whether there is a program, whose
  /// end is then told as closed().
  virtual bool end() { return false; }
  /// Asks the server's program to end at once.
  virtual void stop() {}
};

/// Starts the server's program. Throws Error(kBadInput) if it cannot be started.
std::unique_ptr<McpTransport> start_stdio_transport(RealLoop& loop, const McpServerOptions& options,
                                                    McpTransportHooks hooks);
std::unique_ptr<McpTransport> start_http_transport(RealLoop& loop, const McpServerOptions& options,
                                                   McpTransportHooks hooks);

/// The most bytes of one message.
inline constexpr size_t kMostMcpBytes = 16 << 20;

}  // namespace verbatim::agent
