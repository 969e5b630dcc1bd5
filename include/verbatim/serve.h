#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verbatim/agent_service.h"
#include "verbatim/engine.h"
#include "verbatim/sampling.h"

namespace verbatim {

/// A model that a server offers under a name.
struct ServedModel {
  std::string name;
  std::filesystem::path path;
};

/// How a server listens, what it serves and which limits it keeps.
struct ServerOptions {
  /// The address to listen on, as a name or a number.
  std::string host = "127.0.0.1";
  /// The port; 0 takes a free one, which Server::port() tells.
  uint16_t port = 8080;
  /// The models, at least one. The first one is loaded at once, each other one when it is first asked for.
  std::vector<ServedModel> models = {};
  /// Whether the first model answers requests for names that are not among the models; they are answered 404
  /// otherwise.
  bool any_model_name = false;
  /// The recipe of requests that name none, as load_recipe() takes it. Beside a planned recipe requests may
  /// also name `plain`, and models of BF16 weights are loaded as they are with a copy of four bits to draft
  /// from, because that serves many sequences at once faster than weights that hold drafts too.
  std::string recipe = "auto";
  /// Further recipes that requests may name, as load_recipe() takes them.
  std::vector<std::string> more_recipes = {};
  /// The model that recipes with a `model` level draft with; empty: none.
  std::filesystem::path draft_model = {};
  /// How each model's engine runs.
  EngineOptions engine = {};
  /// The most memory that loaded models may take, in bytes, before the least recently used is unloaded; 0:
  /// what the machine has.
  int64_t model_bytes = 0;

  /// The keys of which a request must show one; empty: none is asked for.
  std::vector<std::string> api_keys = {};
  /// The origins of pages that browsers may let read answers ("https://chat.example", or "*"); empty: none.
  std::vector<std::string> cors_origins = {};
  /// A file with a certificate chain in PEM, for HTTPS; empty: plain HTTP.
  std::filesystem::path tls_certificate = {};
  /// A file with the certificate's key in PEM; empty: plain HTTP.
  std::filesystem::path tls_key = {};

  int64_t max_body_bytes = int64_t{16} << 20;  ///< the most bytes of a request's body
  int64_t max_prompt_tokens = 0;               ///< the most tokens of a prompt; 0: the context
  int64_t max_queue = 256;                     ///< the most requests that wait for their turn; others get 429
  int64_t max_connections = 8192;              ///< the most open connections; others get 503
  std::chrono::seconds header_timeout{10};     ///< the time in which a request's head and body must arrive
  std::chrono::seconds idle_timeout{120};      ///< the longest time between two requests of a connection
  std::chrono::seconds request_timeout{600};   ///< the time in which an answer must be complete
  std::chrono::seconds grace{10};              ///< the time that stop() leaves to answers under way
  int64_t max_stored_responses = 1024;  ///< the most replies of /v1/responses kept for `previous_response_id`

  /// What runs tools of the type "mcp" in requests to /v1/responses, as start_agent_service() makes it; null:
  /// such tools are refused.
  std::shared_ptr<AgentService> tools = {};

  /// A function that is called, on any thread, with each line of the log; empty: there is no log.
  std::function<void(const std::string&)> log = {};
  /// Whether the lines of the log are JSON objects.
  bool json_log = false;
  /// Whether the log has a line for each request.
  bool access_log = true;
};

/// Answers HTTP requests in the interfaces of OpenAI and Anthropic, with the engine behind it, and serves a
/// page to talk with the models (docs/server.md).
class Server {
 public:
  /// Opens the port and loads the first model. Throws Error(kUsage) for options out of range,
  /// Error(kBadInput) for files that are not what they should be, and Error(kMachine) when the port cannot be
  /// had. `progress` is told how far loading is, from 0 to 1.
  explicit Server(ServerOptions options, const std::function<void(double)>& progress = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port that the server listens on.
  uint16_t port() const;
  /// Answers requests until stop() is called and the grace time is over or all answers are complete.
  void run();
  /// Makes run() end: no further request is taken, those running may end within the grace time, and are cut
  /// off after it. A second call cuts them off at once. May be called from any thread, not from a signal
  /// handler.
  void stop();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim
