#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/http.h"
#include "serve/transport/request_parser.h"

namespace verbatim::serve {

/// Where a transport listens and which limits it keeps.
struct TransportOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;                           ///< 0: a free one
  std::filesystem::path tls_certificate = {};  ///< empty: plain HTTP
  std::filesystem::path tls_key = {};
  RequestLimits request = {};
  int64_t max_connections = 8192;
  int64_t max_unsent_bytes = int64_t{4} << 20;  ///< of a stream whose client is slow to take it
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds idle_timeout{120'000};
  std::chrono::milliseconds answer_timeout{600'000};
  std::chrono::milliseconds stall_timeout{
      30'000};  ///< for a client to take any of the bytes that wait for it
  std::chrono::milliseconds linger_timeout{2'000};  ///< for a client to take an answer after which we close
};

/// An answer that has ended, for logs and metrics.
struct AnsweredRequest {
  std::string method;
  std::string path;  ///< empty if the request had none that could be read
  std::string id;
  std::string peer;
  int status = 0;      ///< 0 if the client was gone before there was one
  bool whole = true;   ///< false if the client left, or was disconnected, before the answer's end
  int64_t bytes = 0;   ///< of the answer's body, as far as they were handed to the connection
  double seconds = 0;  ///< from the request's end until the last byte was sent
};

/// What a transport asks the rest of the server. Called on the transport's thread, and `decorate` on any.
struct TransportHooks {
  /// Refuses a request whose head has arrived, or lets it pass with nothing. The body is still empty.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> screen = {};
  /// Adds to the headers of every answer.
  std::function<void(const HttpRequest&, HttpResponse&)> decorate = {};
  /// Answers whole requests.
  HttpHandler handle = {};
  std::function<void(const AnsweredRequest&)> answered = {};
  std::function<void(const std::string&)> warn = {};
};

/// What a transport has moved so far.
struct TransportCounts {
  int64_t connections = 0;  ///< that are open
  int64_t accepted = 0;     ///< connections so far
  int64_t refused = 0;      ///< part of accepted: beyond the limit
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

/// Accepts connections, reads requests and writes answers, all on the one thread that is in run().
class Transport {
 public:
  /// Opens the port. Throws Error(kMachine) when it cannot be had and Error(kBadInput) for the files of TLS.
  Transport(const TransportOptions& options, TransportHooks hooks);
  /// Closes what is still open. run() must have returned. Exchanges may outlive it.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  uint16_t port() const;
  /// Works until close() is called, or drain() and the last connection is closed.
  void run();
  /// Takes no more connections, closes the idle ones, and the others after the answer that is under way. May
  /// be called from any thread, as may the next two.
  void drain();
  /// Closes all connections at once.
  void close();
  /// Calls a function on the transport's thread after a time, unless run() has returned by then.
  void after(std::chrono::milliseconds time, std::function<void()> work);

  TransportCounts counts() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim::serve
