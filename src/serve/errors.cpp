#include "serve/errors.h"

#include <nlohmann/json.hpp>

namespace verbatim::serve {

Dialect dialect_of(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  const bool below =
      path.starts_with(kMessages) && (path.size() == kMessages.size() || path[kMessages.size()] == '/');
  return below ? Dialect::kAnthropic : Dialect::kOpenAi;
}

std::string_view error_type(Dialect dialect, int status) {
  const bool anthropic = dialect == Dialect::kAnthropic;
  switch (status) {
    case 401:
      return anthropic ? "authentication_error" : "invalid_request_error";
    case 403:
      return anthropic ? "permission_error" : "invalid_request_error";
    case 404:
      return anthropic ? "not_found_error" : "invalid_request_error";
    case 413:
      return anthropic ? "request_too_large" : "invalid_request_error";
    case 429:
      return anthropic ? "rate_limit_error" : "rate_limit_exceeded";
    case 503:
      return anthropic ? "overloaded_error" : "server_error";
    default:
      break;
  }
  if (status >= 500) return anthropic ? "api_error" : "server_error";
  return "invalid_request_error";
}

std::string error_body(Dialect dialect, const HttpError& error, const std::string& request_id) {
  using nlohmann::ordered_json;
  const auto word = [](const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(text);
  };
  ordered_json inner = {{"type", error_type(dialect, error.status)}, {"message", error.what()}};
  ordered_json body;
  if (dialect == Dialect::kAnthropic) {
    body = {{"type", "error"}, {"error", inner}};
    if (!request_id.empty()) body["request_id"] = request_id;
  } else {
    inner["param"] = word(error.param);
    inner["code"] = word(error.code);
    body = {{"error", inner}};
  }
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

HttpResponse error_response(Dialect dialect, const HttpError& error, const std::string& request_id) {
  HttpResponse response{
      .status = error.status, .body = error_body(dialect, error, request_id), .headers = error.headers};
  if (error.status == 429 || error.status == 503) response.headers.emplace_back("Retry-After", "1");
  if (dialect == Dialect::kAnthropic && !request_id.empty()) {
    response.headers.emplace_back("request-id", request_id);
  }
  return response;
}

}  // namespace verbatim::serve
