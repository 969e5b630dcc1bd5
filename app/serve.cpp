#include "verbatim/serve.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "command_line.h"
#include "commands.h"
#include "fail.h"
#include "interrupt.h"
#include "model_options.h"
#include "progress.h"
#include "stop_signals.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

constexpr const char* kKeysVariable = "VERBATIM_API_KEYS";

struct Options {
  std::vector<std::string> models;        ///< paths
  std::vector<std::string> named_models;  ///< NAME=PATH
  std::string host = "127.0.0.1";
  int32_t port = 8080;
  bool any_model_name = false;
  std::string recipe = "auto";
  std::vector<std::string> more_recipes;
  std::string draft_model;
  int32_t batch = 8;
  int64_t context = 0;
  int32_t threads = 0;
  double memory_gb = 0;
  std::string cache_dir;
  double cache_dir_gb = 4;
  std::string key_file;
  std::vector<std::string> origins;
  std::string certificate;
  std::string key;
  double max_body_mb = 16;
  int64_t max_prompt_tokens = 0;
  int64_t max_queue = 256;
  int64_t max_connections = 8192;
  int64_t max_stored_responses = 1024;
  int64_t header_timeout = 10;
  int64_t idle_timeout = 120;
  int64_t request_timeout = 600;
  int64_t grace = 10;
  bool json_log = false;
  bool quiet = false;
  std::string mcp;
  AgentServiceOptions tools;
  double tool_seconds = 300;
};

/// The name of a model that was given by its path: that of its folder, or of its file without the ending.
std::string model_name(const std::string& path) {
  std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  if (clean == "." || clean == "..")
    clean = std::filesystem::absolute(clean).lexically_normal().parent_path();
  const std::filesystem::path ending = clean.extension();
  return (ending == ".gguf" || ending == ".vbt" ? clean.stem() : clean.filename()).string();
}

std::vector<ServedModel> served_models(const Options& options) {
  std::vector<ServedModel> models;
  const auto add = [&](const std::string& name, const std::string& path) {
    if (name.empty() || path.empty()) fail(ErrorKind::kUsage, "--model takes NAME=PATH");
    for (const ServedModel& other : models) {
      if (other.name != name) continue;
      fail(ErrorKind::kUsage, "two models have the name \"{}\": name them with --model NAME=PATH",
           shown_name(name));
    }
    models.push_back({.name = name, .path = path});
  };
  for (const std::string& path : options.models) add(model_name(path), path);
  for (const std::string& both : options.named_models) {
    const size_t equals = std::min(both.find('='), both.size());
    add(both.substr(0, equals), both.substr(std::min(equals + 1, both.size())));
  }
  if (models.empty()) fail(ErrorKind::kUsage, "a model is missing: name one as MODEL or --model NAME=PATH");
  return models;
}

/// The words of a text that are separated by any of the separators, without those that are empty.
std::vector<std::string> words_of(const std::string& text, const char* separators) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// The keys of the file, one on each line, and those of the environment, with commas between. Lines that
/// begin with # are remarks.
std::vector<std::string> api_keys(const std::string& file) {
  std::vector<std::string> keys;
  if (!file.empty()) {
    for (const std::string& line : words_of(read_text(file), "\r\n")) {
      const auto words = words_of(line, " \t");
      if (words.empty() || words.front().starts_with('#')) continue;
      if (words.size() > 1) bad_input("{}: a line of it holds more than a key", one_line(file));
      keys.push_back(words.front());
    }
    if (keys.empty()) bad_input("{}: no key is in it; write one on a line of its own", one_line(file));
  }
  const char* const variable = std::getenv(kKeysVariable);
  for (const std::string& key : words_of(variable ? variable : "", ", \t\r\n")) keys.push_back(key);
  return keys;
}

ServerOptions server_options(const Options& options) {
  ServerOptions server;
  server.host = options.host;
  server.port = static_cast<uint16_t>(options.port);
  server.models = served_models(options);
  server.any_model_name = options.any_model_name;
  server.recipe = options.recipe;
  server.more_recipes = options.more_recipes;
  server.draft_model = options.draft_model;
  server.engine.max_batch = options.batch;
  server.engine.capacity = options.context;
  server.engine.threads = options.threads;
  server.engine.cache_dir = options.cache_dir;
  server.engine.cache_dir_bytes = static_cast<int64_t>(options.cache_dir_gb * 1024 * 1024 * 1024);
  server.model_bytes = static_cast<int64_t>(options.memory_gb * 1e9);
  server.api_keys = api_keys(options.key_file);
  server.cors_origins = options.origins;
  server.tls_certificate = options.certificate;
  server.tls_key = options.key;
  server.max_body_bytes = static_cast<int64_t>(options.max_body_mb * 1024 * 1024);
  server.max_prompt_tokens = options.max_prompt_tokens;
  server.max_queue = options.max_queue;
  server.max_connections = options.max_connections;
  server.max_stored_responses = options.max_stored_responses;
  server.header_timeout = std::chrono::seconds(options.header_timeout);
  server.idle_timeout = std::chrono::seconds(options.idle_timeout);
  server.request_timeout = std::chrono::seconds(options.request_timeout);
  server.grace = std::chrono::seconds(options.grace);
  server.json_log = options.json_log;
  server.access_log = !options.quiet;
  server.log = [](const std::string& line) { say("{}\n", line); };
  return server;
}

bool only_this_machine(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]";
}

/// The address that a person opens.
std::string address_of(const ServerOptions& options, uint16_t port) {
  std::string host = options.host;
  if (host == "0.0.0.0" || host == "::" || host == "[::]") host = "localhost";
  if (host.find(':') != std::string::npos && !host.starts_with('[')) host = "[" + host + "]";
  return fmt::format("http{}://{}:{}", options.tls_certificate.empty() ? "" : "s", host, port);
}

#ifdef VERBATIM_WITH_AGENT
/// Starts the servers of tools, if there are any.
std::shared_ptr<AgentService> tool_servers(const Options& options) {
  if (options.mcp.empty()) return nullptr;
  signal(SIGCHLD, SIG_DFL);  // how the servers end is seen only if nobody has had it ignored
  AgentServiceOptions limits = options.tools;
  limits.servers = options.mcp;
  limits.max_time = std::chrono::milliseconds(static_cast<int64_t>(options.tool_seconds * 1000));
  std::shared_ptr<AgentService> service = start_agent_service(limits);
  for (const std::string& warning : service->warnings()) say("verbatim: warning: {}\n", one_line(warning));
  return service;
}
#endif

void serve(const Options& given) {
  StopSignals signals;  // before the threads of the engine
  ServerOptions options = server_options(given);
#ifdef VERBATIM_WITH_AGENT
  options.tools = tool_servers(given);
#endif
  if (options.api_keys.empty() && !only_this_machine(options.host)) {
    say("verbatim: warning: everybody who reaches {} can use this server, for it has no keys: give it some "
        "with "
        "--api-key-file, or listen on 127.0.0.1\n",
        one_line(options.host));
  }
  Server server(options, [](double fraction) { show_progress("loading the model", fraction); });
  end_progress();
  signals.on_signal([&server] { server.stop(); });
  say("listening on {} (page, OpenAI and Anthropic interfaces)\n", address_of(options, server.port()));
  server.run();
  signals.end_at_once();  // what is computed or loaded may take a while to end
  if (signals.interrupted()) throw Exit{kInterruptedExit};
}

void add_limits(Command command, Options& options) {
  const auto add = [&command](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what).group("Limits").show_default();
  };
  constexpr int64_t kMany = int64_t{1} << 40;
  constexpr int64_t kYear = int64_t{366} * 24 * 3600;
  add("--max-body", options.max_body_mb, "MiB of a request's body").range(0.001, 4096.0);
  add("--max-prompt", options.max_prompt_tokens, "Tokens of a prompt; 0: the context")
      .range(int64_t{0}, kMany);
  add("--max-queue", options.max_queue, "Requests that wait for their turn; more are answered 429")
      .range(int64_t{0}, kMany);
  add("--max-connections", options.max_connections, "Open connections").range(int64_t{1}, int64_t{1} << 20);
  add("--max-stored-responses", options.max_stored_responses,
      "Replies of /v1/responses that are kept for `previous_response_id`")
      .range(int64_t{0}, kMany);
  add("--header-timeout", options.header_timeout, "Seconds for a request to arrive").range(int64_t{1}, kYear);
  add("--idle-timeout", options.idle_timeout, "Seconds between the requests of a connection")
      .range(int64_t{1}, kYear);
  add("--request-timeout", options.request_timeout, "Seconds for an answer to be complete")
      .range(int64_t{1}, kYear);
  add("--grace", options.grace, "Seconds for running answers when the server is told to end")
      .range(int64_t{0}, kYear);
}

#ifdef VERBATIM_WITH_AGENT
void add_tools(Command command, Options& options) {
  const char* const tools = "Tools of servers";
  command
      .add_option("--mcp", options.mcp,
                  "A file that names servers of tools, which requests to /v1/responses may then call")
      .type_name("FILE")
      .group(tools);
  const auto add = [&](const char* name, auto& value, const char* what) {
    return command.add_option(name, value, what).group(tools).show_default();
  };
  constexpr int64_t kMost = 1'000'000;
  add("--mcp-answers", options.tools.max_questions, "Answers with tools at a time; more are answered 429")
      .range(int64_t{1}, int64_t{1000});
  add("--mcp-rounds", options.tools.max_rounds, "Plans of an answer").range(int64_t{1}, int64_t{1000});
  add("--mcp-calls", options.tools.max_calls, "Calls of tools for an answer").range(int64_t{1}, kMost);
  add("--mcp-tokens", options.tools.max_tokens, "Tokens of prompts and replies for an answer")
      .range(int64_t{1}, int64_t{1} << 40);
  add("--mcp-seconds", options.tool_seconds, "Seconds of an answer with tools").range(0.001, 1e6);
}
#endif

void add_access(Command command, Options& options) {
  const char* const access = "Access";
  command.add_option("--host", options.host, "The address to listen on").group(access).show_default();
  command.add_option("--port", options.port, "The port; 0 takes a free one")
      .group(access)
      .range(0, 65535)
      .show_default();
  command
      .add_option("--api-key-file", options.key_file,
                  "Keys that requests must show one of, a line each; beside those in VERBATIM_API_KEYS")
      .type_name("FILE")
      .group(access);
  command
      .add_option("--cors-origin", options.origins,
                  "An origin whose pages may use the server in browsers, or *; again for another")
      .one_value()
      .type_name("ORIGIN")
      .group(access);
  command.add_option("--tls-cert", options.certificate, "A certificate chain in PEM, for HTTPS")
      .type_name("FILE")
      .group(access);
  command.add_option("--tls-key", options.key, "The certificate's key").type_name("FILE").group(access);
}

void add_engine(Command command, Options& options) {
  const char* const decoding = "Decoding";
  command
      .add_option("--recipe", options.recipe,
                  "A name from `verbatim recipes` or a .toml file, for requests that "
                  "name none")
      .group(decoding)
      .show_default();
  command.add_list("--recipes", options.more_recipes, "Further recipes that requests may name")
      .type_name("LIST")
      .group(decoding);
  command
      .add_option("--draft-model", options.draft_model,
                  "The model that recipes with a small model draft with")
      .type_name("MODEL")
      .group(decoding);
  command.add_option("--batch", options.batch, "Sequences that are evaluated together")
      .group(decoding)
      .range(1, 1024)
      .show_default();
  command
      .add_option("--context", options.context, "Tokens that a conversation may reach; 0: what the model can")
      .group(decoding)
      .range(int64_t{0}, int64_t{1} << 24);
  command.add_option("--threads", options.threads, "Threads to compute with; without it one per core")
      .group(decoding)
      .range(1, 4096);
  add_portable(command).group(decoding);
  command
      .add_option("--cache-dir", options.cache_dir,
                  "Keeps the beginnings of conversations in a folder, for after a restart")
      .type_name("DIR")
      .group(decoding);
  command.add_option("--cache-dir-size", options.cache_dir_gb, "GiB that may lie in it")
      .group(decoding)
      .range(0.001, 1e6)
      .show_default();
  command
      .add_option("--memory", options.memory_gb,
                  "GB that loaded models may take; the one unused for longest makes room")
      .group(decoding)
      .range(0.001, 1e6);
}

}  // namespace

void add_serve(Command program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.add_command("serve", "Answer HTTP requests as OpenAI and Anthropic do, and a page");
  command.add_option("MODEL", options->models,
                     "Directories in Hugging Face layout, .gguf or .vbt files, each known by its name");
  command.add_option("--model", options->named_models, "A model under a name of its own; again for another")
      .one_value()
      .type_name("NAME=PATH");
  command.add_flag("--any-model-name", options->any_model_name,
                   "Have the first model answer requests for models that are not there");
  add_access(command, *options);
  add_engine(command, *options);
#ifdef VERBATIM_WITH_AGENT
  add_tools(command, *options);
#endif
  add_limits(command, *options);
  command.add_flag("--json-log", options->json_log, "Write the log as lines of JSON");
  command.add_flag("--quiet", options->quiet, "Leave out the log's line for each request");
  command.footer(
      "SIGTERM and Ctrl-C let running answers end within the grace time; a second one cuts them off,\n"
      "and one after that ends the program whatever it does.\n"
      "\n"
      "Examples:\n"
      "  verbatim serve models/target\n"
      "  verbatim serve --model big=model.gguf --model small=models/draft --port 9000 --batch 16\n"
      "  verbatim serve models/target --host 0.0.0.0 --api-key-file keys.txt --tls-cert c.pem --tls-key "
      "k.pem");
  command.callback([options] { serve(*options); });
}

}  // namespace verbatim::app
