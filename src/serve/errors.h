#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "serve/http.h"

namespace verbatim::serve {

/// The interface that a request speaks, which decides the shape of errors.
enum class Dialect { kOpenAi, kAnthropic };

/// The dialect of a path: Anthropic's for /v1/messages and what is below it, else OpenAI's.
Dialect dialect_of(std::string_view path);

/// An error that a request is answered with.
struct HttpError : std::runtime_error {
  /// `param` is the field of the request that is at fault ("messages[2].role"), `code` a word for programs
  /// ("context_length_exceeded"); both may be empty.
  HttpError(int status_, const std::string& message, std::string param_ = {}, std::string code_ = {})
      : std::runtime_error(message), status(status_), param(std::move(param_)), code(std::move(code_)) {}

  int status;
  std::string param;
  std::string code;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< of the answer
};

/// The type that a dialect gives errors of a status: "invalid_request_error", "rate_limit_error", ...
std::string_view error_type(Dialect dialect, int status);
/// The JSON of an error in a dialect's shape, as the body of an answer and as an event of a stream.
/// Anthropic's has the request's id, if one is given.
std::string error_body(Dialect dialect, const HttpError& error, const std::string& request_id = {});
/// The whole answer of an error. Anthropic's has the request's id as a header too. A 429 and a 503 say after
/// how many seconds to try again.
HttpResponse error_response(Dialect dialect, const HttpError& error, const std::string& request_id = {});

}  // namespace verbatim::serve
