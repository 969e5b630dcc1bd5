#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http.h"

namespace verbatim::serve {

/// What a request may be at most.
struct RequestLimits {
  size_t head_bytes = 32 << 10;  ///< its first line and its headers together
  size_t headers = 100;          ///< how many of them
  int64_t body_bytes = int64_t{16} << 20;
};

/// Reads one request of HTTP/1.0 or HTTP/1.1 from the bytes of a connection as they come.
class RequestParser {
 public:
  enum class State {
    kHead,      ///< the head is not complete
    kHeadDone,  ///< the head is complete; take_in() goes on with the body
    kBody,      ///< the body is not complete
    kDone,      ///< the request is complete
    kBad,       ///< the request cannot be read; status() and problem() say why
  };

  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Reads as far as the bytes go, but not beyond the end of the head at once nor beyond that of the request,
  /// and returns how many bytes were read. The rest is to be given again, with more behind it. Nothing is
  /// read after kDone and kBad.
  size_t take_in(std::string_view bytes);

  State state() const;
  /// Which error a request of kBad is answered with: 400, 413, 415, 417, 431 or 501.
  int status() const;
  /// A sentence for whoever sent a request of kBad.
  const std::string& problem() const;
  /// The request as far as it was read: its method, path, query, headers and body.
  HttpRequest& request();
  /// Whether the client wants to send another request on the connection. Known when the head is.
  bool keep_alive() const;
  /// Whether the client speaks HTTP/1.1, and so understands chunks and interim answers.
  bool speaks_1_1() const;
  /// Whether the client waits to hear that its body is wanted.
  bool expects_continue() const;
  /// Whether a body follows the head.
  bool has_body() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim::serve
