#include "serve/transport/answer_head.h"

#include <fmt/format.h>

#include <ctime>

namespace verbatim::serve {

namespace {

void add_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  head += "\r\n";
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

std::string_view status_words(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

std::string answer_head(const HttpResponse& response, const HttpRequest& request, BodyEnd end, int64_t length,
                        bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, status_words(response.status));
  add_header(head, "Date", date_now());
  add_header(head, "Server", "verbatim");
  const bool bodiless = response.status == 204 || response.status == 304;
  if (!bodiless) {
    add_header(head, "Content-Type", response.content_type);
    if (end == BodyEnd::kLength) add_header(head, "Content-Length", std::to_string(length));
    if (end == BodyEnd::kChunks) add_header(head, "Transfer-Encoding", "chunked");
  }
  if (!request.id.empty()) add_header(head, "X-Request-Id", request.id);
  add_header(head, "Connection", keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : response.headers) add_header(head, name, value);
  return head + "\r\n";
}

std::string body_chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace verbatim::serve
