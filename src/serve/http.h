#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbatim::serve {

/// A request as it arrived, whole: its head and its body.
struct HttpRequest {
  std::string method;  ///< in capitals: "GET"
  std::string path;    ///< without the query and not percent-decoded: "/v1/models"
  std::string query;   ///< what stood after the question mark
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string peer;  ///< the client's address
  std::string id;    ///< names the request in the log and in the header X-Request-Id of its answer

  /// The value of a header, whatever the case of its name; empty if there is none.
  std::string_view header(std::string_view name) const;
};

/// The whole of an answer.
struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The way back to the client of one request. An answer is either one respond(), or begin_stream(), any
/// number of write() and end(). All members may be called from any thread; none of them waits for the client:
/// what it is slow to take is kept for it, and a client that is too slow is disconnected. Destroying the
/// exchange before the answer is complete closes the connection.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  virtual const HttpRequest& request() const = 0;
  /// Answers.
  virtual void respond(HttpResponse response) = 0;
  /// Begins an answer whose length is not known: `head` has no body.
  virtual void begin_stream(HttpResponse head) = 0;
  /// Adds to the answer that was begun. What is written after the client left is dropped.
  virtual void write(std::string chunk) = 0;
  /// Completes the answer that was begun.
  virtual void end() = 0;
  /// Whether the client has left, or was disconnected.
  virtual bool gone() const = 0;
  /// Sets a function that is called once if the client leaves before its answer is complete; at once, if it
  /// has left already.
  virtual void on_gone(std::function<void()> gone) = 0;
};

/// Answers requests. Called on a thread of the transport, which it must not block: long work goes elsewhere.
using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

}  // namespace verbatim::serve
