#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/loop/real_loop.h"

namespace verbatim::agent {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The status of a server that did nothing because it has too much to do.
inline constexpr int kTooManyRequests = 429;

/// An address of HTTP: `http://host:8080/path?query`.
struct HttpUrl {
  bool tls = false;
  std::string host;
  std::string port;
  std::string target;  ///< path and query

  /// Throws Error(kUsage) for what is no such address.
  static HttpUrl parse(const std::string& url);
};

struct HttpCallOptions {
  std::string url;
  std::string method = "POST";
  HttpHeaders headers = {};
  std::string body = {};
};

/// The beginning of an answer; the names of its headers are in lower case.
struct HttpHead {
  int status = 0;
  HttpHeaders headers = {};
  /// The value of a header, or an empty text.
  std::string header(std::string_view name) const;
};

struct HttpCallHooks {
  std::function<void(const HttpHead&)> head = {};
  std::function<void(std::string_view)> body = {};  ///< a piece
  /// Called once; the error is empty if the answer was whole.
  std::function<void(const std::string& error)> ended = {};
};

/// One request and its answer, over a connection of its own. Destroying it closes the connection, and no hook
/// is called any more.
class HttpCall {
 public:
  virtual ~HttpCall() = default;
  /// Whether the server may have received any of the request. A failure before that did nothing.
  virtual bool sent() const = 0;
};

/// Sends a request. The hooks are called by the loop, and not from within this call. Throws Error(kUsage) for
/// an address that is none.
std::unique_ptr<HttpCall> start_http(RealLoop& loop, HttpCallOptions options, HttpCallHooks hooks);

/// The data of server-sent events, put together from the pieces of a body.
class EventStream {
 public:
  /// Takes a piece and hands over the data of each event that it completes. Throws Error(kBadInput) for an
  /// event of more than 64 MiB.
  void add(std::string_view piece, const std::function<void(const std::string& data)>& event);

 private:
  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace verbatim::agent
